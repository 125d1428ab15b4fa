"""record keeps what the steps did, and disturbs nothing."""

from __future__ import annotations

import csv
import sys

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


def setting(activation=nn.ReLU):
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), activation(), nn.Linear(8, 3))
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, taeda.randn(6, 4), taeda.tensor([0, 1, 2, 0, 1, 2])


def train(model, optimizer, x, y, steps=10):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_numbers():
    model, optimizer, x, y = setting()
    before = model[0].weight.detach().clone()
    with taeda.record(model, optimizer, every=1) as run:
        losses = train(model, optimizer, x, y, 1)
        grad = model[0].weight.grad.clone()
        change = (model[0].weight.detach() - before).norm() / before.norm()
        losses += train(model, optimizer, x, y, 9)
    assert run.losses == losses and len(run.times) == 10 and min(run.times) > 0
    assert list(run.gradients) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert run.gradients["0.weight"][0] == pytest.approx(grad.norm().item())
    assert run.ratios["0.weight"][0] == pytest.approx(change.item())
    squares = sum(values[4] ** 2 for values in run.gradients.values())
    assert run.grad_norms[4] == pytest.approx(squares**0.5)
    assert list(run.dead) == ["1"] and len(run.dead["1"]) == 10


def test_dead_units():
    model, optimizer, x, y = setting()
    with taeda.no_grad():
        model[0].weight[:2] = 0
        model[0].bias[:2] = -1
    with taeda.record(model, optimizer) as run:
        train(model, optimizer, x, y, 1)
    alive = (model[0](x) > 0).any(0).float().mean().item()
    assert run.dead["1"][0] >= 0.25 and run.dead["1"][0] == pytest.approx(1 - alive, abs=0.13)

    conv = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 1))
    with taeda.no_grad():
        conv[0].weight[1] = 0
        conv[0].bias[:] = taeda.tensor([9.0, -1.0, 9.0, 9.0])
    with taeda.record(conv, taeda.optim.SGD(conv.parameters(), lr=0.1)) as run:
        conv(taeda.rand(2, 1, 4, 4)).mean().backward()
        run.optimizer.step()
    assert run.dead["1"][0] == 0.25  # one channel of four


def test_the_same_results_and_no_trace():
    plain = train(*setting())
    model, optimizer, x, y = setting()
    with taeda.strict(), taeda.record(model, optimizer) as run:
        assert train(model, optimizer, x, y) == plain
    assert run.losses == plain
    assert "step" not in vars(optimizer) and "_around_step" not in vars(optimizer)
    switch = taeda.strict().enable()
    with taeda.record(model, optimizer):
        switch.disable()
        train(model, optimizer, x, y, 1)
        optimizer.preview()
    assert "step" not in vars(optimizer) and "_around_step" not in vars(optimizer)
    assert taeda.Tensor.backward.__name__ == "backward" and nn.Module._call_hooks is None


def test_accumulated_and_separate_losses():
    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer) as run:
        for _ in range(2):
            optimizer.zero_grad()
            for _ in range(3):
                (F.cross_entropy(model(x), y) / 3).backward()
            optimizer.step()
        optimizer.zero_grad()
        model(x).backward(taeda.ones(6, 3))
        optimizer.step()
    loss = F.cross_entropy(setting()[0](x), y).item()
    assert run.losses[0] == pytest.approx(loss) and run.losses[2] is None


def test_files_and_printing(tmp_path):
    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer, every=2) as run:
        assert repr(run) == "<record: no steps>"
        train(model, optimizer, x, y)
    run.to_csv(tmp_path / "run.csv")
    with open(tmp_path / "run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10 and float(rows[3]["loss"]) == run.losses[3]
    assert rows[2]["grad_norm"] and not rows[1]["grad_norm"] and rows[2]["ratio/0.weight"]
    assert "10 steps" in repr(run) and "of the weights" in repr(run)
    model, optimizer, *_ = setting()
    with taeda.record(model, optimizer) as run:
        pass
    run.to_csv(tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text().strip() == "step,loss,seconds"


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_plot(activation, tmp_path):
    pytest.importorskip("matplotlib")
    model, optimizer, x, y = setting(activation)
    with taeda.record(model, optimizer) as run:
        train(model, optimizer, x, y)
    figure = run.plot(tmp_path / "run.png")
    assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
    assert len(figure.axes) == 4 and (tmp_path / "run.png").stat().st_size > 10_000


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer, every=2) as run:
        train(model, optimizer, x, y)
    run.to_tensorboard(tmp_path)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"loss", "seconds", "grad_norm", "gradient/0.weight", "ratio/2.bias", "dead/1"} <= set(
        events.Tags()["scalars"]
    )
    for name in events.Tags()["scalars"]:
        read = {event.step: event.value for event in events.Scalars(name)}
        kept = {i: row[name] for i, row in enumerate(run.rows()) if row[name] is not None}
        assert read == pytest.approx(kept, rel=1e-6), name
    assert len(events.Scalars("loss")) == 10 and len(events.Scalars("grad_norm")) == 5


def test_tensorboard_is_missing(tmp_path, monkeypatch):
    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer) as run:
        train(model, optimizer, x, y, 1)
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install taeda\[tensorboard\]"):
        run.to_tensorboard(tmp_path)


def test_wrong_arguments():
    model, optimizer, *_ = setting()
    with pytest.raises(TypeError, match=r"record\(\): model must be a Module"):
        taeda.record(optimizer, model)
    with pytest.raises(ValueError, match="every must be at least 1"):
        taeda.record(model, optimizer, every=0)


def test_passes_within_a_backward_are_not_losses():
    """A checkpoint runs backward of its part within the pass of the loss."""
    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer) as run:
        for _ in range(5):
            optimizer.zero_grad()
            hidden = taeda.utils.checkpoint.checkpoint(
                model[:2], x.clone().requires_grad_(), use_reentrant=True
            )
            F.cross_entropy(model[2](hidden), y).backward()
            optimizer.step()
    plain = train(*setting(), steps=5)
    assert run.losses == plain


def test_losses_of_other_kinds():
    model, optimizer, x, y = setting()
    with taeda.record(model, optimizer) as run:
        for loss in ("double", "list", "vector", "nan"):
            for _ in range(4):  # of which the last are not measured in full
                optimizer.zero_grad()
                out = model(x)
                if loss == "double":
                    out.double().mean().backward()
                elif loss == "list":
                    taeda.autograd.backward(out.mean())
                elif loss == "vector":
                    out.mean(0).backward(taeda.ones(3))
                else:
                    (out.mean() * float("nan")).backward()
                optimizer.step()
    kinds = [type(value) for value in run.losses]
    assert kinds == [float] * 8 + [type(None)] * 4 + [float] * 4
    assert all(value != value for value in run.losses[12:]) and len(run.times) == 16


def test_two_recordings_at_once():
    model, optimizer, x, y = setting()
    other, second, *_ = setting()
    with taeda.record(model, optimizer) as run, taeda.record(other, second) as both:
        for _ in range(6):
            optimizer.zero_grad()
            second.zero_grad()
            (F.cross_entropy(model(x), y) + F.cross_entropy(other(x), y)).backward()
            optimizer.step()
            second.step()
    assert run.losses == both.losses and len(run.losses) == 6 and len(both.ratios) == 4
    train(model, optimizer, x, y, 2)
    assert len(run.losses) == 6


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_losses_are_without_the_factor_of_a_scaler(dtype):
    taeda.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.01)
    scaler = taeda.amp.GradScaler("cpu", init_scale=2.0**30)
    losses = []
    with taeda.record(model, optimizer) as run:
        for _ in range(25):
            optimizer.zero_grad()
            with taeda.autocast("cpu", dtype=dtype):
                first, second = (model(taeda.randn(6, 4)).square().mean() for _ in range(2))
            for loss in scaler.scale([first, second]):
                loss.backward()
            before = len(run.losses)
            scaler.step(optimizer)
            scaler.update()
            if len(run.losses) > before:  # the gradients have not overflowed
                losses.append(first.item() + second.item())
    assert run.losses == pytest.approx(losses, rel=1e-6) and len(losses) > 0
    assert not taeda.amp.grad_scaler.on_scaled
    # A callback of the Trainer that scales does the same.
    mixed = taeda.training.MixedPrecision(dtype, taeda.amp.GradScaler("cpu", init_scale=64.0))
    trainer = taeda.Trainer(model, nn.MSELoss(), optimizer, callbacks=[mixed])
    with taeda.record(model, optimizer) as run:
        losses = [trainer.step(taeda.randn(6, 4), taeda.randn(6, 1)).loss for _ in range(3)]
    assert run.losses == pytest.approx(losses, rel=1e-6)
