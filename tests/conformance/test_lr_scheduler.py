"""Every learning rate schedule and weight average beside PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import tensor_to_taeda, to_torch  # noqa: E402


class Height:
    def __init__(self) -> None:
        self.base = 0.5

    def __call__(self, x: float) -> float:
        return self.base**x


# Name -> how to make it from the library's lr_scheduler module and an optimizer.
SCHEDULES: dict[str, Any] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "lambda-each": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05),
    "step": lambda s, o: s.StepLR(o, 4, gamma=0.3),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 8, 8, 20], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 7),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.8, 11),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.87),
    "polynomial": lambda s, o: s.PolynomialLR(o, 13, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 1, 0.01),
    "restarts-longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4),
    "cyclic-down": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 4, 3, mode="triangular2"),
    "cyclic-exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.97),
    "cyclic-own": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 4, scale_fn=Height(), scale_mode="iterations"
    ),
    "cyclic-no-momentum": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, cycle_momentum=False),
    "one-cycle": lambda s, o: s.OneCycleLR(o, 0.5, 31),
    "one-cycle-phases": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.4], epochs=8, steps_per_epoch=4, anneal_strategy="linear", three_phase=True
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 5)], [5, 15]
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 6), s.ExponentialLR(o, 0.9), s.StepLR(o, 9)]
    ),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, patience=2, cooldown=1, factor=0.5),
    "plateau-max": lambda s, o: s.ReduceLROnPlateau(
        o, "max", 0.5, 1, 0.1, "abs", min_lr=[0.01, 0.03]
    ),
    "swa": lambda s, o: _swa(s)(o, 0.05, 6),
    "swa-linear": lambda s, o: _swa(s)(o, [0.05, 0.7], 9, "linear"),
    "swa-at-once": lambda s, o: _swa(s)(o, 0.05, 0),
}


def _swa(schedulers: Any) -> Any:
    return (torch if schedulers is torch.optim.lr_scheduler else taeda).optim.swa_utils.SWALR


OPTIMIZERS = {"SGD": {"momentum": 0.9}, "Adam": {}}


def make(library: Any, name: str, optimizer: str) -> tuple[Any, Any]:
    groups = [
        {"params": [library.nn.Parameter(library.ones(1))], "lr": 0.1 * (i + 1)} for i in range(2)
    ]
    made = getattr(library.optim, optimizer)(groups, **OPTIMIZERS[optimizer])
    return made, SCHEDULES[name](library.optim.lr_scheduler, made)


def step(optimizer: Any, scheduler: Any, i: int) -> None:
    optimizer.step()
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        scheduler.step(abs(i - 9) // 3 + 1)
    else:
        scheduler.step()


def options(optimizer: Any) -> list:
    return [
        {key: value for key, value in group.items() if key != "params"}
        for group in optimizer.param_groups
    ]


def assert_close(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_close(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15)
    else:
        assert ours == theirs


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_sequence_and_states(name: str, optimizer: str) -> None:
    (our_optimizer, ours), (their_optimizer, theirs) = (
        make(library, name, optimizer) for library in (taeda, torch)
    )
    assert_close(options(our_optimizer), options(their_optimizer))
    for i in range(30):
        step(our_optimizer, ours, i)
        step(their_optimizer, theirs, i)
        assert_close(ours.get_last_lr(), theirs.get_last_lr())
        assert_close(options(our_optimizer), options(their_optimizer))
        assert_close(ours.state_dict(), theirs.state_dict())


@pytest.mark.parametrize("name", SCHEDULES)
def test_resuming_from_pytorch_and_into_it(name: str) -> None:
    (our_optimizer, ours), (their_optimizer, theirs) = (
        make(library, name, "SGD") for library in (taeda, torch)
    )
    for i in range(11):
        step(our_optimizer, ours, i)
        step(their_optimizer, theirs, i)
    runs = []
    for library, state, groups in (
        (taeda, theirs.state_dict(), their_optimizer.state_dict()),
        (torch, ours.state_dict(), our_optimizer.state_dict()),
    ):
        optimizer, scheduler = make(library, name, "SGD")
        optimizer.load_state_dict({**groups, "state": {}})
        scheduler.load_state_dict(state)
        runs.append((optimizer, scheduler))
    for i in range(11, 30):
        step(their_optimizer, theirs, i)
        for optimizer, scheduler in runs:
            step(optimizer, scheduler, i)
            assert_close(scheduler.get_last_lr(), theirs.get_last_lr())


def warned(function: Any) -> list:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [w.category for w in found]


@pytest.mark.parametrize("name", sorted(set(SCHEDULES) - {"plateau", "plateau-max"}))
def test_warnings(name: str) -> None:
    found = []
    for library in (taeda, torch):
        optimizer, scheduler = make(library, name, "SGD")
        seen = [warned(scheduler.step), warned(scheduler.step)]
        if name not in ("sequential", "chained"):
            seen += [warned(lambda s=scheduler: s.step(3)), warned(scheduler.get_lr)]
        found.append(seen)
    assert found[0] == found[1]


ERRORS = {
    "not an optimizer": lambda s, o: s.StepLR(3, 2),
    "cyclic mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"),
    "cyclic lengths": lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    "one-cycle nothing": lambda s, o: s.OneCycleLR(o, 0.1),
    "one-cycle epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=2),
    "one-cycle steps": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=2.5),
    "one-cycle pct": lambda s, o: s.OneCycleLR(o, 0.1, 9, pct_start=2),
    "one-cycle anneal": lambda s, o: s.OneCycleLR(o, 0.1, 9, anneal_strategy="x"),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "restarts mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0.5),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda e: 1]),
    "sequential none": lambda s, o: s.SequentialLR(o, [], []),
    "sequential milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 2)], [3]),
    "chained none": lambda s, o: s.ChainedScheduler([]),
    "plateau factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau mode": lambda s, o: s.ReduceLROnPlateau(o, mode="x"),
    "plateau threshold": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"),
    "plateau lengths": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1]),
    "constant": lambda s, o: s.ConstantLR(o, factor=2),
    "linear start": lambda s, o: s.LinearLR(o, start_factor=0),
    "linear end": lambda s, o: s.LinearLR(o, end_factor=2),
    "resuming": lambda s, o: s.StepLR(o, 2, last_epoch=3),
    "swa anneal": lambda s, o: _swa(s)(o, 0.1, anneal_strategy="x"),
    "swa epochs": lambda s, o: _swa(s)(o, 0.1, anneal_epochs=-1),
    "swa lengths": lambda s, o: _swa(s)(o, [0.1]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    raised = []
    for library in (taeda, torch):
        optimizer, _ = make(library, "step", "SGD")
        for group in optimizer.param_groups:
            del group["initial_lr"]
        with pytest.raises(Exception) as info:
            ERRORS[name](library.optim.lr_scheduler, optimizer)
        raised.append(info.type)
    assert raised[0] is raised[1]


AVERAGES = {
    "default": lambda s: {},
    "ema-multi": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
    "ema-multi-buffers": lambda s: {
        "multi_avg_fn": s.get_ema_multi_avg_fn(0.9),
        "use_buffers": True,
    },
    "ema": lambda s: {"avg_fn": s.get_ema_avg_fn(0.8)},
    "swa": lambda s: {"avg_fn": s.get_swa_avg_fn()},
}


@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_models(name: str) -> None:
    torch.manual_seed(0)
    first = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    batches = [torch.randn(6, 3) for _ in range(4)]
    results = []
    for library in (taeda, torch):
        convert = tensor_to_taeda if library is taeda else torch.clone
        nn, swa = library.nn, library.optim.swa_utils
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        model.load_state_dict({k: convert(v) for k, v in first.state_dict().items()})
        averaged = swa.AveragedModel(model, **AVERAGES[name](swa))
        optimizer = library.optim.SGD(model.parameters(), lr=0.1)
        for batch in batches:
            model(convert(batch)).square().sum().backward()
            optimizer.step()
            averaged.update_parameters(model)
        found = [dict(averaged.state_dict())]
        found[0] = {k: v.clone() for k, v in found[0].items()}
        swa.update_bn([(convert(b), 0) for b in batches], averaged)
        found.append(averaged.state_dict())
        results.append(found)
    for ours, theirs in zip(*results, strict=True):
        assert list(ours) == list(theirs)
        for key, value in theirs.items():
            torch.testing.assert_close(to_torch(ours[key]), value, msg=lambda m, k=key: f"{k}: {m}")
