"""What explain says about a loss, a model and an optimizer through a training step."""

from __future__ import annotations

import json

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


def setting(optimizer=taeda.optim.SGD, **options):
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = taeda.randn(5, 4), taeda.tensor([0, 1, 2, 0, 1])
    return model, optimizer(model.parameters(), **{"lr": 0.1, **options}), x, y


def states(found):
    return {str(row.grad) for row in found.rows}


def test_a_step_from_forward_to_forward():
    model, optimizer, x, y = setting(momentum=0.9)
    loss = F.cross_entropy(model(x), y)
    found = taeda.explain(loss, model, optimizer)
    assert found.pending and states(found) == {"none"} and not found.findings
    first, *_, last = found.rows
    assert first.name == "0.weight" and first.shape == (8, 4) and first.reached
    assert first.ops == ("linear", "relu", "linear", "cross_entropy")
    assert first.modules == ("0", "1", "2") and last.modules == ("2",)
    assert first.settings["momentum"] == 0.9 and first.group == 0 and first.grad_norm is None
    expected = [row.update for row in found.rows]

    loss.backward()
    found = taeda.explain(loss, model, optimizer)
    assert not found.pending and states(found) == {"fresh"} and not found.findings
    assert [row.update for row in found.rows] == expected
    assert found.rows[0].grad_norm == pytest.approx(model[0].weight.grad.norm().item())
    before = model[0].weight.detach().clone()
    optimizer.step()
    assert expected[0] == pytest.approx((model[0].weight.detach() - before).norm().item())

    found = taeda.explain(loss, model, optimizer)
    assert states(found) == {"stale"} and not found.mistakes
    loss = F.cross_entropy(model(x), y)
    found = taeda.explain(loss, model, optimizer)
    assert [f.kind for f in found.mistakes] == ["zero_grad"]
    assert "optimizer.zero_grad()" in found.mistakes[0].mend
    loss.backward()
    assert states(taeda.explain(loss, model, optimizer)) == {"sum of 2, used"}
    optimizer.zero_grad(set_to_none=False)
    assert states(taeda.explain(loss, model, optimizer)) == {"zero"}
    optimizer.zero_grad()
    assert states(taeda.explain(loss, model, optimizer)) == {"none"}


def test_named_parameters_are_known_from_the_first_step():
    model, _, x, y = setting()
    optimizer = taeda.optim.Adam(model.named_parameters())
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    assert states(taeda.explain(loss, model, optimizer)) == {"stale"}


def test_a_graph_that_is_kept():
    model, optimizer, x, y = setting()
    loss = F.cross_entropy(model(x), y)
    for backwards in (1, 2, 3):
        loss.backward(retain_graph=True)
        expected = "fresh" if backwards == 1 else f"sum of {backwards}"
        found = taeda.explain(loss, model, optimizer)
        assert states(found) == {expected}


def test_nothing_is_changed():
    model, optimizer, x, y = setting(taeda.optim.Adam)
    model.insert(2, nn.Dropout())
    loss = F.cross_entropy(model(x), y)
    before = [(p._version, p.grad) for p in model.parameters()]
    stream = taeda.get_rng_state()
    taeda.explain(loss, model, optimizer)
    assert before == [(p._version, p.grad) for p in model.parameters()]
    assert taeda.equal(stream, taeda.get_rng_state()) and not optimizer.state
    loss.backward()
    optimizer.step()


def test_printing():
    model, optimizer, x, y = setting()
    model.eval()
    found = taeda.explain(F.cross_entropy(model(x), y), model, optimizer)
    text = repr(found)
    assert "linear > relu > linear > cross_entropy" in text and "group 0 lr=0.1" in text
    assert "! The model is in evaluation mode" in text and "    model.train()" in text
    page = found._repr_html_()
    assert page.count("<tr>") == 5 and "<code>model.train()</code>" in page
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["parameters"][0]["grad"]["state"] == "none"
    assert plain["findings"][0]["kind"] == "eval"


def test_shared_parameters_recurrent_and_attention_models():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm = nn.Embedding(7, 6), nn.LSTM(6, 6, 2)
            self.block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0)
            self.out = nn.Linear(6, 7)
            self.out.weight = self.embed.weight

        def forward(self, x):
            return self.out(self.block(self.lstm(self.embed(x))[0]))

    model = Tied()
    loss = F.cross_entropy(model(taeda.randint(7, (5, 2))).reshape(-1, 7), taeda.zeros(10).long())
    found = taeda.explain(loss, model, taeda.optim.Adam(model.parameters()))
    assert [f.kind for f in found.findings] == ["tied"] and not found.mistakes
    assert found.rows[0].names == ("embed.weight", "out.weight")
    assert all(row.reached and row.update for row in found.rows)
    assert found.rows[1].modules[0] == "lstm"


def test_without_model_or_optimizer():
    model, optimizer, x, y = setting()
    loss = F.cross_entropy(model(x), y)
    assert not taeda.explain(loss).rows
    assert len(taeda.explain(loss, model).rows) == 4
    found = taeda.explain(loss, optimizer=optimizer)
    assert found.rows[0].name == "(a tensor of shape (8, 4))" and found.rows[0].update
    with pytest.raises(TypeError, match=r"explain\(\): loss must be a Tensor, got float"):
        taeda.explain(1.0)
    with pytest.raises(TypeError, match=r"explain\(\): model must be a Module, got SGD"):
        taeda.explain(loss, optimizer)
    with pytest.raises(TypeError, match=r"explain\(\): optimizer must be an Optimizer"):
        taeda.explain(loss, model, model)


def test_a_function_written_in_python_and_lbfgs():
    class Double(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    layer = nn.Linear(2, 1)
    optimizer = taeda.optim.LBFGS(layer.parameters())
    loss = Double.apply(layer(taeda.ones(3, 2))).mean()
    found = taeda.explain(loss, layer, optimizer)
    assert found.rows[0].ops == ("linear", "Double", "mean") and found.rows[0].update is None


@pytest.mark.parametrize("uses", [1, 2, 3, 5])
def test_a_layer_that_is_used_several_times(uses):
    layer = nn.Linear(3, 3)
    optimizer = taeda.optim.SGD(layer.parameters(), lr=0.1)
    for backwards in (1, 2, 3):
        x = taeda.randn(2, 3)
        for _ in range(uses):
            x = layer(x).tanh()
        loss = x.mean()
        loss.backward()
        expected = "fresh" if backwards == 1 else f"sum of {backwards}"
        assert states(taeda.explain(loss, layer, optimizer)) == {expected}


def test_two_models_with_their_optimizers():
    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    optimizer = taeda.optim.Adam(maker.parameters())
    loss = judge(maker(taeda.randn(4, 2))).mean()
    found = taeda.explain(loss, maker, optimizer)
    assert [f.kind for f in found.mistakes] == ["unregistered"]
    other = taeda.optim.Adam(judge.parameters())
    assert not taeda.explain(loss, maker, optimizer).mistakes and other.param_groups
