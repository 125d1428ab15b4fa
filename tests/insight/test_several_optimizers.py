"""One model, of which each optimizer has a part."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn, optim
from taeda.nn import functional as F

from . import models


@pytest.fixture
def gpt():
    """A GPT whose matrices Muon steps, and AdamW the rest."""
    model, x, loss_of = models.cases()["gpt"]
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    ids = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in ids]
    both = optim.Muon(matrices, lr=0.02), optim.AdamW(rest, lr=1e-3)
    return model, loss_of(model(x)), both


def test_explain_takes_them_together(gpt):
    model, loss, both = gpt
    found = taeda.explain(loss, model, both)
    assert not found.mistakes
    rows = {row.name: row for row in found.rows}
    assert rows["blocks.0.mlp.0.weight"].optimizer == "Muon"
    assert rows["blocks.0.mlp.0.bias"].optimizer == "AdamW"
    assert rows["blocks.0.mlp.0.bias"].settings["lr"] == 1e-3
    assert "Muon group 0 lr=0.02" in str(found) and "AdamW group 0 lr=0.001" in str(found)
    loss.backward()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    planned = {row.name: row.update for row in taeda.explain(loss, model, both).rows}
    for optimizer in both:
        optimizer.step()
    for name, p in model.named_parameters():
        assert planned[name] == pytest.approx(float((p.detach() - before[name]).norm()), rel=1e-3)
    assert {str(row.grad) for row in taeda.explain(loss, model, both).rows} == {"stale"}


def test_explain_says_what_none_of_them_does(gpt):
    model, loss, (muon, adamw) = gpt
    partial = taeda.explain(loss, model, muon).mistakes[0]
    assert partial.kind == "partial" and partial.text.startswith("The optimizer does not hold")
    few = optim.AdamW([model.wpe.weight], lr=0)
    found = {f.kind: f.text for f in taeda.explain(loss, model, iter([muon, few])).findings}
    assert found["partial"].startswith("No optimizer holds `wte.weight`")
    assert found["lr_zero"].startswith("Group 0 of AdamW has a learning rate of 0")
    again = taeda.explain(loss, model, [muon, adamw, few])
    assert "The optimizers hold `wpe.weight` more than once" in str(again)


def test_wiring_draws_all_of_them(gpt):
    model, loss, both = gpt
    picture = taeda.wiring(loss, model, both)
    first, second = (box for box in picture.boxes if box.kind == "optimizer")
    assert (first.title, second.title) == ("Muon", "AdamW")
    assert second.y >= first.y + first.height
    assert picture.width >= max(box.x + box.width for box in (first, second))


def test_wiring_puts_each_beside_its_parameters():
    maker, critic = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 1)
    loss = F.softplus(-critic(maker(taeda.randn(6, 4)))).mean()
    whole = nn.ModuleDict({"maker": maker, "critic": critic})
    of_critic, of_maker = optim.SGD(critic.parameters()), optim.Adam(maker.parameters())
    boxes = taeda.wiring(loss, whole, [of_maker, of_critic]).boxes
    middle = {box.title: box.y + box.height / 2 for box in boxes}
    assert middle["Adam"] < middle["SGD"]


@pytest.mark.parametrize("wrong", [[], [1], "Adam", 3])
def test_what_is_no_optimizer(wrong):
    model = nn.Linear(2, 1)
    loss = model(taeda.ones(1, 2)).sum()
    for tool in (taeda.explain, taeda.wiring):
        with pytest.raises(TypeError, match="optimizer must be an Optimizer, or several of them"):
            tool(loss, model, wrong)
    with pytest.raises(TypeError, match="of several, each has a record of its own"):
        taeda.record(model, wrong)
