"""Learning rate schedules give PyTorch's rates."""

from __future__ import annotations

import itertools
import random
import warnings

import pytest

import taeda
from taeda.optim import lr_scheduler

CASES = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.5**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9 ** (epoch + 1)}),
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5]}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 4}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 25}),
    (
        "OneCycleLR",
        {"max_lr": 1.0, "total_steps": 25, "three_phase": True, "anneal_strategy": "linear"},
    ),
]
NAMES = [name for name, _ in CASES]


def make_optimizer(library, name="SGD", tensor_lr=False):
    parameters = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
    for p in parameters:
        p.grad = library.ones(1)
    groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.3}]
    options = {"momentum": 0.9} if name == "SGD" else {}
    lr = library.tensor(0.1) if tensor_lr else 0.1
    return getattr(library.optim, name)(groups, lr=lr, **options)


def rates(library, make, steps=20, **options):
    """The rates and momenta of every epoch."""
    optimizer = make_optimizer(library, **options)
    scheduler = make(library.optim.lr_scheduler, optimizer)
    result = []
    for _ in range(steps):
        groups = optimizer.param_groups
        result += [float(group["lr"]) for group in groups]
        result += [float(rate) for rate in scheduler.get_last_lr()]
        result += [g["momentum"] if "momentum" in g else g["betas"][0] for g in groups]
        optimizer.step()
        scheduler.step()
    return result


def compare(make, **options):
    torch = pytest.importorskip("torch")
    ours, theirs = rates(taeda, make, **options), rates(torch, make, **options)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"name": "Adam"}, {"tensor_lr": True}], ids=["SGD", "Adam", "tensor lr"]
)
@pytest.mark.parametrize(("name", "arguments"), CASES, ids=NAMES)
def test_same_rates_as_pytorch(name, arguments, options):
    compare(lambda module, o: getattr(module, name)(o, **arguments), **options)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.product(CASES[:-2], repeat=2)), ids=lambda case: case[0]
)
def test_schedules_can_be_combined(first, second):
    def both(module, optimizer):
        return [getattr(module, name)(optimizer, **options) for name, options in (first, second)]

    compare(lambda module, o: module.SequentialLR(o, both(module, o), [4]), steps=12)
    compare(lambda module, o: module.ChainedScheduler(both(module, o)), steps=12)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1},
        {"patience": 2, "cooldown": 2, "factor": 0.5, "mode": "max"},
        {"threshold_mode": "abs", "patience": 0, "threshold": 0.1, "min_lr": 0.01},
        {"mode": "max", "threshold_mode": "abs", "patience": 1, "min_lr": [0.01, 0.02]},
    ],
)
def test_plateaus(options):
    torch = pytest.importorskip("torch")
    rng = random.Random(0)
    metrics = [rng.random() + 3 / (i + 1) for i in range(40)]
    results = []
    for library in (taeda, torch):
        optimizer = make_optimizer(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        for metric in metrics:
            scheduler.step(library.tensor(metric))
            results.append((library, scheduler.get_last_lr()))
    ours = [x for library, pair in results if library is taeda for x in pair]
    theirs = [x for library, pair in results if library is torch for x in pair]
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=NAMES)
def test_going_on_from_a_saved_state(name, arguments):
    first = make_optimizer(taeda)
    scheduler = getattr(lr_scheduler, name)(first, **arguments)
    second = make_optimizer(taeda)
    other = getattr(lr_scheduler, name)(second, **arguments)
    for step in range(12):
        if step == 5:
            other.load_state_dict(scheduler.state_dict())
            second.load_state_dict(first.state_dict())
        if step >= 5:
            assert scheduler.get_last_lr() == other.get_last_lr()
            assert [g["lr"] for g in first.param_groups] == [g["lr"] for g in second.param_groups]
            second.step()
            other.step()
        first.step()
        scheduler.step()


def test_state_of_combined_schedules():
    def make(optimizer):
        parts = [lr_scheduler.ConstantLR(optimizer), lr_scheduler.ExponentialLR(optimizer, 0.9)]
        return lr_scheduler.SequentialLR(optimizer, parts, [3])

    first = make_optimizer(taeda)
    scheduler = make(first)
    for _ in range(5):
        first.step()
        scheduler.step()
    second = make_optimizer(taeda)
    other = make(second)
    other.load_state_dict(scheduler.state_dict())
    second.load_state_dict(first.state_dict())
    for optimizer, s in ((first, scheduler), (second, other)):
        optimizer.step()
        s.step()
    assert scheduler.get_last_lr() == other.get_last_lr()


def test_stepping_in_the_wrong_order_warns():
    scheduler = lr_scheduler.StepLR(make_optimizer(taeda), 3)
    with pytest.warns(UserWarning, match="before optimizer.step"):
        scheduler.step()


def test_going_to_an_epoch_is_deprecated():
    optimizer = make_optimizer(taeda)
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    with pytest.warns(UserWarning, match="deprecated"):
        scheduler.step(7)
    assert scheduler.last_epoch == 7
    assert scheduler.get_last_lr() == pytest.approx([0.001, 0.003])


def test_going_on_needs_initial_rates():
    optimizer = make_optimizer(taeda)
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer, 3, last_epoch=4)


def test_one_cycle_ends():
    optimizer = make_optimizer(taeda)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=3)
    optimizer.step()
    with pytest.raises(ValueError, match="number of total steps is 3"):
        for _ in range(5):
            scheduler.step()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m, o: m.LambdaLR(o, [lambda e: 1.0]), "Expected 2 lr_lambdas"),
        (lambda m, o: m.LinearLR(o, start_factor=0), "start_factor"),
        (lambda m, o: m.LinearLR(o, end_factor=2), "end_factor"),
        (lambda m, o: m.ConstantLR(o, factor=2), "factor"),
        (lambda m, o: m.OneCycleLR(o, 1.0), "total_steps"),
        (lambda m, o: m.OneCycleLR(o, 1.0, total_steps=-3), "total_steps"),
        (lambda m, o: m.OneCycleLR(o, 1.0, total_steps=3, pct_start=2), "pct_start"),
        (lambda m, o: m.OneCycleLR(o, 1.0, total_steps=3, anneal_strategy="x"), "anneal_strategy"),
        (lambda m, o: m.OneCycleLR(o, [1.0], total_steps=3), "max_lr"),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 0), "T_0"),
        (lambda m, o: m.ReduceLROnPlateau(o, factor=1), "factor"),
        (lambda m, o: m.ReduceLROnPlateau(o, mode="x"), "mode"),
        (lambda m, o: m.ReduceLROnPlateau(o, min_lr=[1.0]), "min_lrs"),
        (lambda m, o: m.SequentialLR(o, [], []), "at least one"),
        (lambda m, o: m.SequentialLR(o, [m.ConstantLR(o)], [3]), "milestone"),
        (
            lambda m, o: m.SequentialLR(o, [m.ConstantLR(o), m.ReduceLROnPlateau(o)], [3]),
            "ReduceLROnPlateau",
        ),
        (
            lambda m, o: m.ChainedScheduler([m.ConstantLR(make_optimizer(taeda))], o),
            "same optimizer",
        ),
    ],
)
def test_bad_options_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(lr_scheduler, make_optimizer(taeda))


def test_only_optimizers_are_taken():
    with pytest.raises(TypeError, match="expected an Optimizer, got int"):
        lr_scheduler.StepLR(3, 3)


def test_sequential_of_chained():
    """A ChainedScheduler may be one of the schedules, the first (PyTorch's numbers) or a later one."""
    warning = "before optimizer.step"
    for first, expected in ((True, [0.405, 0.729, 1.0, 0.5]), (False, [0.5, 0.25, 0.5, 0.45])):
        optimizer = taeda.optim.SGD([taeda.nn.Parameter(taeda.ones(1))], lr=1.0)
        chained = lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
        )
        plain = lr_scheduler.ExponentialLR(optimizer, 0.5)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*{warning}.*")
            schedules = [chained, plain] if first else [plain, chained]
            schedule = lr_scheduler.SequentialLR(optimizer, schedules, milestones=[3])
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates += schedule.get_last_lr()
        assert rates == pytest.approx(expected)
