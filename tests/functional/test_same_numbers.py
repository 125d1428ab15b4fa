"""The functional loop computes what the loop with objects computes, to the last bit."""

from __future__ import annotations

import copy
import pickle

import pytest

import taeda
from taeda import functional
from taeda.optim import lr_scheduler
from taeda.utils._pytree import tree_map
from tests.functional.cases import CASES, OPTIMIZERS, SPECIAL, F, assert_same, batches, train


def train_functionally(case, name, options, steps=100, schedule=None, donate=True, finished=False):
    data = batches(case)
    if finished:
        taeda.manual_seed(0)
    factory = functional.factory(case.make() if finished else case.make)
    optimizer = functional.optimizer(getattr(taeda.optim, name), donate=donate, **options)
    taeda.manual_seed(2)
    parameters = factory.init()
    buffers = factory.buffers()
    state = optimizer.init(parameters)
    if schedule is not None:
        scheduler = functional.scheduler(schedule)
        state, scheduled = scheduler.init(state)
    for i in range(steps):
        x, y = data[i % len(data)]

        def gradient_and_loss(parameters, x=x, y=y):
            model = factory(parameters)
            loss = F.cross_entropy(model(x), y)
            return model.backward(loss), loss

        if name == "LBFGS":
            parameters, state = optimizer.step(parameters, gradient_and_loss, state)
            continue
        model = factory(parameters, buffers)
        loss = F.cross_entropy(model(x), y)
        gradient = model.backward(loss)
        parameters, state = optimizer.step(parameters, gradient, state)
        buffers = model.buffers
        if schedule is not None:
            state, scheduled = scheduler.step(state, scheduled)
    return {**parameters, **buffers}, state


@pytest.mark.parametrize("network", CASES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_on_each_network(name, network):
    case, options = CASES[network], OPTIMIZERS[name]
    tensors, _ = train_functionally(case, name, options)
    assert_same(train(case, name, options), tensors)


@pytest.mark.parametrize("name", SPECIAL)
def test_optimizers_with_needs_of_their_own(name):
    case, options = SPECIAL[name]
    tensors, _ = train_functionally(case, name, options)
    assert_same(train(case, name, options), tensors)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Rprop", "Adafactor"])
def test_without_donation(name):
    case, options = CASES["dropout"], OPTIMIZERS[name]
    tensors, _ = train_functionally(case, name, options, donate=False)
    assert_same(train(case, name, options), tensors)


@pytest.mark.parametrize("network", ["dropout", "batch norm", "lstm"])
def test_a_finished_network_is_initialised_as_if_it_had_just_been_made(network):
    case, options = CASES[network], OPTIMIZERS["AdamW"]
    tensors, _ = train_functionally(case, "AdamW", options, finished=True)
    assert_same(train(case, "AdamW", options), tensors)


SCHEDULES = {
    "step": lambda o: lr_scheduler.StepLR(o, 7, 0.5),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 30),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=110),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.1, step_size_up=5),
    "warm restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 9),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o,
        [lr_scheduler.LinearLR(o, 0.1, total_iters=10), lr_scheduler.ExponentialLR(o, 0.97)],
        milestones=[10],
    ),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5, 4), lr_scheduler.PolynomialLR(o, 50)]
    ),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [10, 40]),
    "multiplicative": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.99),
    "swa": lambda o: taeda.optim.swa_utils.SWALR(o, 0.01),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule):
    case, options = CASES["dropout"], OPTIMIZERS["SGD"]
    tensors, _ = train_functionally(case, "SGD", options, schedule=SCHEDULES[schedule])
    assert_same(train(case, "SGD", options, schedule=SCHEDULES[schedule]), tensors)
    options = {**OPTIMIZERS["AdamW"], "lr": taeda.tensor(0.01)}
    want = train(case, "AdamW", {**options, "lr": options["lr"].clone()}, 30, SCHEDULES[schedule])
    tensors, _ = train_functionally(case, "AdamW", options, 30, SCHEDULES[schedule])
    assert_same(want, tensors)
    assert options["lr"] == taeda.tensor(0.01)


def test_a_schedule_that_looks_at_the_loss():
    layer = taeda.nn.Linear(1, 1)
    ordinary = taeda.optim.SGD(layer.parameters(), lr=1.0)
    plateau = lr_scheduler.ReduceLROnPlateau(ordinary, patience=1)
    optimizer = functional.optimizer(taeda.optim.SGD, lr=1.0)
    scheduler = functional.scheduler(lr_scheduler.ReduceLROnPlateau, patience=1)
    state, scheduled = scheduler.init(optimizer.init(functional.Parameters.of(layer)))
    for metric in (3.0, 2.0, 2.0, 2.5, 2.5, 2.5, 2.5, 2.5):
        plateau.step(metric)
        earlier = scheduled
        state, scheduled = scheduler.step(state, scheduled, metric)
        assert scheduled.last_lr == plateau.get_last_lr() == [state.groups[0]["lr"]]
    assert earlier.last_lr != [1.0]


def test_groups():
    case = CASES["dropout"]
    x, y = batches(case, 1)[0]
    taeda.manual_seed(0)
    module = case.make().eval()
    pairs = dict(module.named_parameters())
    ordinary = taeda.optim.AdamW(
        [{"params": [pairs["0.weight"], pairs["3.weight"]]}, {"params": [pairs["0.bias"]], "lr": 1}]
    )
    F.cross_entropy(module(x), y).backward()
    optimizer = functional.optimizer(taeda.optim.AdamW, groups={"*.bias": {"lr": 1}})
    parameters = functional.Parameters.of(module)
    gradient = functional.Parameters({name: p.grad for name, p in pairs.items()})
    state = optimizer.init(parameters)
    assert [group["params"] for group in state.groups] == [("0.weight", "3.weight"), ("0.bias",)]
    ordinary.step()
    parameters, state = optimizer.step(parameters, gradient, state)
    assert_same(module, parameters)
    with pytest.raises(ValueError, match=r"'\*\.gain' matches none"):
        functional.optimizer(taeda.optim.AdamW, groups={"*.gain": {}}).init(parameters)


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_states_pass_between_the_two_forms(name, tmp_path):
    case, options = CASES["dropout"], OPTIMIZERS[name]
    tensors, state = train_functionally(case, name, options, 10)
    module = case.make()
    ordinary = getattr(taeda.optim, name)(module.named_parameters(), **options)
    functional.Parameters(tensors).copy_to(module)
    taeda.save(state.state_dict(), tmp_path / "state.pt")
    ordinary.load_state_dict(taeda.load(tmp_path / "state.pt"))
    parameters = functional.Parameters(tensors)
    optimizer = functional.optimizer(getattr(taeda.optim, name), **options)
    state = optimizer.load_state_dict(ordinary.state_dict(), parameters)
    for _ in range(3):
        gradient = 0.1 * parameters
        for parameter, value in zip(module.parameters(), gradient.values(), strict=True):
            parameter.grad = value
        ordinary.step()
        parameters, state = optimizer.step(parameters, gradient, state)
    assert_same(module, parameters)


def test_going_on_from_saved_states(tmp_path):
    case = CASES["dropout"]
    x, y = batches(case, 1)[0]
    factory = functional.factory(case.make)
    adam = functional.optimizer(taeda.optim.Adam, lr=0.1, groups={"*.bias": {"lr": 0.2}})
    scheduler = functional.scheduler(SCHEDULES["sequence"])

    def steps(parameters, state, scheduled, count):
        for _ in range(count):
            model = factory(parameters, training=False)
            gradient = model.backward(F.cross_entropy(model(x), y))
            parameters, state = adam.step(parameters, gradient, state)
            state, scheduled = scheduler.step(state, scheduled)
        return parameters, state, scheduled

    parameters = factory.init(0)
    parameters, state, scheduled = steps(parameters, *scheduler.init(adam.init(parameters)), 12)
    parameters.save(tmp_path / "p.safetensors")
    taeda.save([state.state_dict(), scheduled.state_dict()], tmp_path / "state.pt")
    whole, _, rates = steps(parameters, state, scheduled, 5)

    parameters = functional.Parameters.load(tmp_path / "p.safetensors")
    saved = taeda.load(tmp_path / "state.pt")
    state = adam.load_state_dict(saved[0], parameters)
    state, scheduled = scheduler.load_state_dict(saved[1], state)
    again, _, same_rates = steps(parameters, state, scheduled, 5)
    assert again == whole and rates.last_lr == same_rates.last_lr


class Failing(taeda.optim.Adam):
    """Fails where it is told to, half done."""

    fails = False

    def step(self, closure=None):
        for values in self.state.values():
            values["more"] = 1
        if Failing.fails:
            raise ValueError("as it was told")
        super().step(closure)


@pytest.mark.parametrize(
    "between",
    [
        lambda p, state: (p, pickle.loads(pickle.dumps(state))),
        lambda p, state: (pickle.loads(pickle.dumps(p)), copy.deepcopy(state)),
        lambda p, state: (p, state) if state.values else None,
        lambda p, state: (p, state) if p["w"] is not None else None,
        lambda p, state: (p, state.replace(lr=state.groups[0]["lr"])),
        lambda p, state: tree_map(lambda leaf: leaf, (p, state)),
        lambda p, state: (1.0 * p, state),
    ],
)
def test_whatever_happens_between_steps(between):
    adam = functional.optimizer(taeda.optim.Adam, lr=0.1)
    start = functional.Parameters({"w": taeda.tensor([1.0, 2.0]), "v": taeda.ones(3)})
    (p, state), (q, other) = ((p, adam.init(p)) for p in (start.clone(), start.clone()))
    for _ in range(4):
        p, state = adam.step(p, 0.5 * p, state)
        q, other = between(*adam.step(q, 0.5 * q, other))
    assert p == q
    assert state.groups == other.groups and state.values.keys() == other.values.keys()
    for name in p:
        assert taeda.equal(state.values[name]["exp_avg"], other.values[name]["exp_avg"])


def test_a_step_that_fails_leaves_what_it_was_given():
    failing = functional.optimizer(Failing, lr=0.1)
    p = functional.Parameters({"w": taeda.ones(3)})
    p, state = failing.step(p, 1.0 * p, failing.init(p))
    with pytest.raises(RuntimeError, match=r"'w' has shape \(3,\), but its gradient has shape"):
        failing.step(p, {"w": taeda.ones(2)}, state)
    with pytest.raises(ValueError, match="no parameters are named"):
        failing.step(p, {"v": taeda.ones(2)}, state)
    Failing.fails = True
    try:
        with pytest.raises(ValueError, match="as it was told"):
            failing.step(p, 1.0 * p, state)
    finally:
        Failing.fails = False
    assert "more" not in state._values["w"] and p._tensors["w"].grad is None
    assert failing.step(p, 1.0 * p, state)[1].values["w"]["more"] == 1


def test_no_registry_knows_of_the_optimizers_that_step():
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1)
    p = functional.Parameters({"w": taeda.ones(3)})
    before = set(taeda.optim.optimizer.alive)
    with taeda.strict(every=1):
        state, gradient = sgd.init(p), taeda.functional.Parameters({"w": taeda.ones(3)})
        for _ in range(4):  # the same gradient again, which strict refuses of an ordinary one
            p, state = sgd.step(p, gradient, state)
    assert set(taeda.optim.optimizer.alive) <= before
