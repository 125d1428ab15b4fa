"""What raises leaves optimizers, schedulers and parameters as they were."""

import copy

import pytest

import taeda
from taeda import nn, optim
from taeda.optim import lr_scheduler


def optimizer(kind="Adam", named=False):
    """One that has taken a step."""
    params = [nn.Parameter(taeda.ones(2, 3)), nn.Parameter(taeda.ones(3))]
    for param in params:
        param.grad = taeda.ones_like(param)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    given = list(zip("ab", params, strict=True)) if named else params
    made = getattr(optim, kind)(given, lr=0.1, **options)
    made.step()
    return made


def plain(value):
    """Tensors as lists, so that nested states can be compared."""
    if isinstance(value, taeda.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def state(made):
    groups = made.param_groups
    return plain(made.state_dict()), [plain(p) for group in groups for p in group["params"]]


def saved(**changes):
    return {**copy.deepcopy(optimizer().state_dict()), **changes}


def with_names(*names):
    made = optimizer(named=True).state_dict()
    return {**made, "param_groups": [{**made["param_groups"][0], "param_names": list(names)}]}


LOADING = {
    "no groups": {"state": {}},
    "no state": {"param_groups": []},
    "fewer groups": saved(param_groups=[]),
    "fewer parameters": saved(param_groups=[{"params": [0]}]),
    "a group without parameters": saved(param_groups=[{}]),
    "a group that is none": saved(param_groups=[3]),
    "a state that is none": saved(state=3),
    "a parameter's state that is none": saved(state={0: 3}),
    "no dict": 3,
}
ADDING = {
    "no dict": 3,
    "no params": {},
    "a string": {"params": ["x"]},
    "a set": {"params": {taeda.zeros(1)}},
    "a result": {"params": [nn.Parameter(taeda.zeros(1)) * 1]},
    "with names": {"params": [("z", nn.Parameter(taeda.zeros(1)))]},
}


@pytest.mark.parametrize("given", LOADING.values(), ids=LOADING)
def test_load_state_dict(given):
    made = optimizer()
    before = state(made)
    with pytest.raises((TypeError, ValueError, KeyError, AttributeError)):
        made.load_state_dict(given)
    assert state(made) == before


def test_load_state_dict_with_other_names():
    made = optimizer(named=True)
    before = state(made)
    with pytest.raises(ValueError, match="names differ"):
        made.load_state_dict(with_names("a", "c"))
    assert state(made) == before


@pytest.mark.parametrize("given", ADDING.values(), ids=ADDING)
def test_add_param_group(given):
    made = optimizer()
    before, own = state(made), copy.copy(given)
    with pytest.raises((TypeError, ValueError, KeyError)):
        made.add_param_group(given)
    assert state(made) == before
    assert given == own or given.keys() == own.keys()


def test_add_param_group_twice():
    made = optimizer()
    group = {"params": made.param_groups[0]["params"][:1]}
    with pytest.raises(ValueError, match="more than one group"):
        made.add_param_group(group)
    assert len(made.param_groups) == 1 and list(group) == ["params"]


@pytest.mark.parametrize(
    "kind",
    [
        "SGD",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "ASGD",
        "Rprop",
    ],
)
def test_step_with_a_state_of_another_shape(kind):
    made = optimizer(kind)
    last = made.state[made.param_groups[0]["params"][1]]
    for name, value in last.items():
        if isinstance(value, taeda.Tensor) and value.dim():
            last[name] = taeda.zeros(9)
    before = state(made)
    with pytest.raises(RuntimeError, match=rf"{kind}\.step: parameter number 1 has shape \(3,\)"):
        made.step()
    assert state(made) == before


def several(kind):
    own = optimizer()
    parts = [lr_scheduler.ConstantLR(own, 0.1, 2), lr_scheduler.ExponentialLR(own, 0.9)]
    if kind == "chained":
        return lr_scheduler.ChainedScheduler(parts)
    return lr_scheduler.SequentialLR(own, parts, [2])


def failing(epoch):
    return 1.0 if epoch == 0 else 1 / (epoch - 1)


SCHEDULES = {
    "StepLR": lambda: lr_scheduler.StepLR(optimizer(), 2),
    "LambdaLR": lambda: lr_scheduler.LambdaLR(optimizer(), failing),
    "CyclicLR": lambda: lr_scheduler.CyclicLR(optimizer(), 0.1, 0.2, cycle_momentum=False),
    "sequential": lambda: several("sequential"),
    "chained": lambda: several("chained"),
    "plateau": lambda: lr_scheduler.ReduceLROnPlateau(optimizer()),
}
CHANGES = [
    ("StepLR", lambda s: s.load_state_dict(3)),
    ("StepLR", lambda s: s.load_state_dict([("last_epoch", 1), 3])),
    ("StepLR", lambda s: s.step("a")),
    ("LambdaLR", lambda s: s.step()),
    ("LambdaLR", lambda s: s.load_state_dict({"last_epoch": 7})),
    ("LambdaLR", lambda s: s.load_state_dict({"last_epoch": 7, "lr_lambdas": [None, None]})),
    ("CyclicLR", lambda s: s.load_state_dict({"last_epoch": 7})),
    ("sequential", lambda s: s.load_state_dict({"last_epoch": 7})),
    ("sequential", lambda s: s.load_state_dict({"_schedulers": [{"last_epoch": 5}]})),
    ("sequential", lambda s: s.load_state_dict({"_schedulers": [{"last_epoch": 5}, 3]})),
    ("chained", lambda s: s.load_state_dict({"_schedulers": [{"last_epoch": 5}, 3]})),
    ("plateau", lambda s: s.step("a")),
]


@pytest.mark.parametrize(("which", "change"), CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_schedulers(which, change):
    made = SCHEDULES[which]()
    before = plain(made.state_dict()), state(made.optimizer)
    with pytest.raises((TypeError, ValueError, KeyError, ZeroDivisionError)):
        change(made)
    assert (plain(made.state_dict()), state(made.optimizer)) == before


def test_a_chain_of_which_one_fails_takes_no_step():
    own = optimizer()
    made = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(own, 0.5), lr_scheduler.LambdaLR(own, failing)]
    )
    before = plain([s.state_dict() for s in made._schedulers]), state(own)
    with pytest.raises(ZeroDivisionError):
        made.step()
    assert (plain([s.state_dict() for s in made._schedulers]), state(own)) == before
