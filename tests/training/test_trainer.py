"""Trainer: the same numbers as a loop, callbacks, and what it reports."""

from __future__ import annotations

import copy
import doctest
import io
import subprocess
import sys

import numpy as np
import pytest

import taeda
import taeda.training._trainer
from taeda import nn, optim, training
from taeda.training import (
    Accumulate,
    Average,
    Checkpoint,
    Clip,
    EarlyStopping,
    MixedPrecision,
    Progress,
    Schedule,
)
from tests.functional.cases import CASES, OPTIMIZERS, SPECIAL, F, assert_same, batches, train


def test_nothing_of_it_is_loaded_before_it_is_used():
    code = (
        "import sys, taeda; print([m for m in sys.modules if 'training' in m or '._factory' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_examples():
    failed, count = doctest.testmod(taeda.training._trainer)
    assert not failed and count


def train_with_a_trainer(case, name, options, steps=100):
    data = batches(case)
    taeda.manual_seed(2)
    model = case.make()
    trainer = taeda.Trainer(
        model, F.cross_entropy, getattr(optim, name)(model.parameters(), **options)
    )
    for i in range(steps):
        assert trainer.step(*data[i % len(data)]).updated
    assert trainer.updates == steps
    return model.state_dict()


@pytest.mark.parametrize("network", CASES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_numbers_as_a_loop(name, network):
    case, options = CASES[network], OPTIMIZERS[name]
    assert_same(train(case, name, options), train_with_a_trainer(case, name, options))


@pytest.mark.parametrize("name", SPECIAL)
def test_optimizers_with_needs_of_their_own(name):
    case, options = SPECIAL[name]
    assert_same(train(case, name, options), train_with_a_trainer(case, name, options))


@pytest.fixture
def data():
    taeda.manual_seed(0)
    X = taeda.randn(50, 4)
    return X, (X[:, :1] - X[:, 1:2]).contiguous()


def make(lr=0.05, loss=F.mse_loss, **options):
    taeda.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.1), nn.Linear(6, 1))
    return taeda.Trainer(model, loss, optim.SGD(model.parameters(), lr=lr), **options)


def test_fit_is_the_loop_over_a_loader(data):
    trainer = make(metrics={"mae": F.l1_loss})
    history = trainer.fit(*data, epochs=4, batch_size=8, validation=data)
    taeda.manual_seed(1)
    model = copy.deepcopy(make().model)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    loader = taeda.utils.data.DataLoader(taeda.utils.data.TensorDataset(*data), 8, shuffle=True)
    held_out = taeda.utils.data.DataLoader(taeda.utils.data.TensorDataset(*data), 8)
    for epoch in range(4):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        list(held_out)  # draws a seed
        assert history[epoch]["loss"] == total / 50
    assert_same(model, trainer.model.state_dict())
    assert history is trainer.history and trainer.epoch == 4 and trainer.updates == 28
    assert set(history[0]) == {"epoch", "loss", "mae", "validation loss", "validation mae"}
    model.eval()
    want = F.mse_loss(model(data[0]), data[1]).item()
    assert trainer.evaluate(*data)["loss"] == pytest.approx(want) == history[-1]["validation loss"]
    taeda.testing.assert_close(trainer.predict(data[0], batch_size=7), model(data[0]).detach())
    assert trainer.model.training


def test_kinds_of_data(data):
    trainer = make()
    X, y = data
    dataset = taeda.utils.data.TensorDataset(X, y)
    trainer.fit(dataset, epochs=1)
    trainer.fit([(X, y)], epochs=2)
    trainer.fit(X.numpy(), y.numpy(), epochs=3, shuffle=False)
    assert trainer.predict([(X[:20], y[:20]), (X[20:], y[20:])]).shape == (50, 1)
    assert trainer.predict(np.asarray(X)).shape == trainer.predict([X]).shape == (50, 1)
    with pytest.raises(TypeError, match="inputs and targets together"):
        trainer.fit(dataset, y, epochs=4)
    with pytest.raises(TypeError, match="got int"):
        trainer.fit(3, epochs=4)
    with pytest.raises(ValueError, match="no batches"):
        trainer.predict([])
    with pytest.warns(UserWarning, match="3 epochs are done already"):
        trainer.fit(X, y, epochs=3)


def test_batches_of_another_form(data):
    class OfDicts(taeda.Trainer):
        def compute(self, model, batch):
            output = model(batch["x"])
            return output, self.loss(output, batch["y"])

    model = make().model
    trainer = OfDicts(model, F.mse_loss, optim.SGD(model.parameters(), lr=0.05))
    batch = {"x": data[0], "y": data[1]}
    assert trainer.step(batch).updated
    trainer.fit([batch], epochs=2)
    assert trainer.evaluate([batch])["loss"] == pytest.approx(make_loss(model, data))

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 1)

        def forward(self, a, b):
            return self.linear(a) + b

    model = Pair()
    trainer = taeda.Trainer(model, F.mse_loss, optim.SGD(model.parameters()))
    trainer.fit([(data[0], data[1], data[1])])
    assert trainer.predict([(data[0], data[1], data[1])]).shape == (50, 1)


def make_loss(model, data):
    return F.mse_loss(model.eval()(data[0]), data[1]).item()


def test_a_step_reports_what_happened(data):
    trainer = make()
    before = taeda.functional.Parameters.of(trainer.model)
    step = trainer.step(*data, gradients=True, updates=True)
    assert step.output.shape == (50, 1) and step.loss > 0
    assert list(step.gradients) == list(step.updates) == list(before)
    for name, parameter in trainer.model.named_parameters():
        assert taeda.equal(step.gradients[name], parameter.grad)
        taeda.testing.assert_close(step.updates[name], -0.05 * step.gradients[name])
    assert trainer.step(*data).gradients is None
    trainer.zero_grad()
    assert all(p.grad is None for p in trainer.model.parameters())


def test_accumulation(data):
    X, y = data
    trainer = make(callbacks=[Accumulate(5)])
    trainer.model[2].p = 0.0
    other = make()
    other.model[2].p = 0.0
    for i in range(5):
        step = trainer.step(X[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10])
        assert step.updated == (i == 4)
    other.step(X, y)
    for a, b in zip(trainer.model.parameters(), other.model.parameters(), strict=True):
        taeda.testing.assert_close(a, b)
    trainer.fit(X, y, batch_size=10, epochs=1)
    assert trainer.updates == 2
    trainer.fit(X, y, batch_size=8, epochs=2)
    assert trainer.updates == 4 and trainer.epoch == 2


def test_clipping(data):
    norms = make(callbacks=[Clip(0.01)]).step(*data, gradients=True).gradients
    assert norms.norm().item() == pytest.approx(0.01, rel=1e-3)
    limited = make(callbacks=[Clip(value=0.001)]).step(*data, gradients=True).gradients
    assert limited.norm(float("inf")).item() == pytest.approx(0.001)
    for wrong in ({}, {"norm": 1.0, "value": 1.0}):
        with pytest.raises(ValueError, match="either"):
            Clip(**wrong)


def test_schedules(data):
    trainer = make()
    scheduler = optim.lr_scheduler.StepLR(trainer.optimizer, 2)
    trainer = taeda.Trainer(
        trainer.model, F.mse_loss, trainer.optimizer, callbacks=[Schedule(scheduler)]
    )
    trainer.fit(*data, epochs=4)
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(0.0005)
    per_update = optim.lr_scheduler.LambdaLR(trainer.optimizer, lambda n: 1 / (1 + n))
    trainer = taeda.Trainer(
        trainer.model, F.mse_loss, trainer.optimizer, callbacks=[Schedule(per_update, "update")]
    )
    trainer.step(*data)
    assert per_update.last_epoch == 1
    plateau = optim.lr_scheduler.ReduceLROnPlateau(trainer.optimizer, patience=0, threshold=1.0)
    watching = Schedule(plateau, monitor="loss")
    trainer = taeda.Trainer(trainer.model, F.mse_loss, trainer.optimizer, callbacks=[watching])
    rate = trainer.optimizer.param_groups[0]["lr"]
    trainer.fit(*data, epochs=3)
    assert trainer.optimizer.param_groups[0]["lr"] < rate
    with pytest.raises(ValueError, match="another optimizer"):
        make(callbacks=[watching])
    with pytest.raises(ValueError, match="every"):
        Schedule(plateau, "batch")


def test_early_stopping(data):
    stopping = EarlyStopping("loss", patience=2, least=100.0, restore=True)
    first = make()
    first.fit(*data, epochs=1)
    trainer = make(callbacks=[stopping])
    history = trainer.fit(*data, epochs=10)
    assert len(history) == 3 and trainer.stop
    assert_same(trainer.model, first.model.state_dict())
    with pytest.warns(UserWarning, match="has been stopped"):
        trainer.fit(*data, epochs=10)
    with pytest.raises(KeyError, match="'validation loss'"):
        make(callbacks=[EarlyStopping()]).fit(*data)
    stopping = EarlyStopping("loss", mode="max", patience=1)
    trainer = make(callbacks=[stopping])
    assert len(trainer.fit(*data, epochs=10)) == 2


def test_averages(data):
    average = Average(0.9)
    trainer = make(callbacks=[average])
    trainer.fit(*data, epochs=2)
    other = make()
    want = optim.swa_utils.AveragedModel(
        other.model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )

    class Update(training.Callback):
        def after_update(self, trainer):
            want.update_parameters(trainer.model)

    twin = make(callbacks=[Update()])
    twin.fit(*data, epochs=2)
    assert_same(average.model, want.state_dict())
    assert trainer.evaluate(*data, model=average.model) != trainer.evaluate(*data)
    assert trainer.predict(data[0], model=average.model).shape == (50, 1)


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_mixed_precision(data, dtype):
    seen = []

    def loss(output, target):
        seen.append(output.dtype)
        return F.mse_loss(output.float(), target)

    mixed = MixedPrecision(dtype)
    trainer = make(loss=loss, callbacks=[mixed, Clip(1.0)])
    trainer.fit(*data, epochs=3, validation=data)
    assert set(seen) == {dtype} and trainer.history[-1]["loss"] < trainer.history[0]["loss"]
    assert (mixed.scaler is not None) == (dtype is taeda.float16)
    if mixed.scaler is not None:
        mixed.scaler.update(1e38)
        assert not trainer.step(*data).updated
        assert mixed.scaler.get_scale() < 1e38
    with pytest.raises(ValueError, match="dtype"):
        MixedPrecision(taeda.float32)


def test_checkpoints_of_the_best(data, tmp_path):
    path = tmp_path / "best.pt"
    worse = Checkpoint(path, best="loss", mode="max")
    trainer = make(callbacks=[worse])
    trainer.fit(*data, epochs=4)
    assert taeda.load(path)["progress"]["epoch"] == 1
    for wrong in ({"batches": 0}, {"batches": 1, "best": "loss"}, {"mode": "best"}):
        with pytest.raises(ValueError, match="Checkpoint"):
            Checkpoint(path, **wrong)


def test_progress(data, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    make(callbacks=[Progress()]).fit(*data, epochs=2, batch_size=10)
    text = sys.stderr.getvalue()
    assert "epoch 2" in text and "5/5" in text and "loss=" in text
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install taeda\[progress\]"):
        Progress()


def test_mistakes(data):
    with pytest.raises(ValueError, match="none of the model's parameters"):
        taeda.Trainer(nn.Linear(1, 1), F.mse_loss, optim.SGD(nn.Linear(1, 1).parameters()))
    model = nn.Linear(4, 1)
    with pytest.raises(ValueError, match="LBFGS computes the loss several times"):
        taeda.Trainer(model, F.mse_loss, optim.LBFGS(model.parameters()), callbacks=[Accumulate(2)])
    with pytest.raises(ValueError, match="positive"):
        Accumulate(0)
    saved = make(callbacks=[Average()]).state_dict()
    with pytest.raises(ValueError, match=r"the callbacks \['Average'\], the trainer has \[\]"):
        make().load_state_dict(saved)
    with pytest.raises(ValueError, match="version"):
        make().load_state_dict({})
    assert not make().resume("nothing.pt")


def test_a_failing_step_leaves_a_trainer_that_goes_on(data):
    trainer = make()
    with pytest.raises(RuntimeError):
        trainer.fit([(data[0], data[1]), (data[1], data[1])], epochs=1)
    assert trainer.fit(*data, epochs=1)[0]["epoch"] == 1


def test_what_is_no_model_loss_or_optimizer():
    model = nn.Linear(2, 1)
    optimizer, loss = taeda.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss()
    for given, message in [
        ((nn.Linear, loss, optimizer), "model must be a Module, got the class Linear"),
        ((model, "mse", optimizer), "loss must be a function of output and target, .* got str"),
        ((model, nn.MSELoss, optimizer), r"loss must be .*MSELoss\(\), got the class MSELoss"),
        ((model, loss, taeda.optim.SGD), "optimizer must be an Optimizer, .* got the class SGD"),
        ((model, loss, [optimizer]), "optimizer must be an Optimizer, .* got list"),
    ]:
        with pytest.raises(TypeError, match=f"Trainer: {message}"):
            taeda.Trainer(*given)


def test_trainer_and_steps_are_shown_in_a_line():
    model = nn.Linear(2, 1)
    trainer = taeda.Trainer(model, nn.MSELoss(), taeda.optim.SGD(model.parameters(), lr=0.1))
    step = trainer.step(taeda.ones(4, 2), taeda.ones(4, 1), gradients=True, updates=True)
    assert repr(trainer) == "Trainer(Linear, MSELoss, SGD; 0 epochs, 1 updates)"
    norms = step.gradients.norm().item(), step.updates.norm().item()
    assert repr(step) == (
        f"Step(loss={step.loss:.6g}, output of shape (4, 1), updated=True, gradients of norm "
        f"{norms[0]:.4g}, updates of norm {norms[1]:.4g})"
    )
    plain = trainer.step(taeda.ones(4, 2), taeda.ones(4, 1))
    assert repr(plain).endswith("output of shape (4, 1), updated=True)")


def test_a_schedule_by_a_value_asks_for_its_name():
    model = nn.Linear(2, 1)
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    plateau = taeda.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    with pytest.raises(ValueError, match=r'ReduceLROnPlateau goes by a value.*monitor="valid'):
        taeda.Trainer(model, nn.MSELoss(), optimizer, callbacks=[Schedule(plateau)])
    by_loss = Schedule(plateau, monitor="loss")
    taeda.Trainer(model, nn.MSELoss(), optimizer, callbacks=[by_loss]).fit(
        taeda.zeros(8, 2), taeda.ones(8, 1), epochs=3
    )
