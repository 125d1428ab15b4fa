"""Optimizers follow PyTorch's trajectories, and keep its structure of state."""

from __future__ import annotations

import copy
import pickle

import pytest

import taeda
from taeda import optim

CASES = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.6, 0.9)}),
    ("Adam", {"maximize": True, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.3}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.02}),
    ("ASGD", {"weight_decay": 0.1, "lambd": 0.01, "t0": 2}),
    ("Adafactor", {"weight_decay": 0.1}),
]
NAMES = [f"{name}-{'-'.join(options) or 'default'}" for name, options in CASES]
START = [[[0.5, -1.5, 2.0], [0.1, 0.7, -0.4]], [1.0, -2.0, 0.3, 0.05, -0.6]]


def train(library, name, options, dtype, steps=12):
    """Some steps on a small problem; in one of them a parameter has no gradient."""
    parameters = [
        library.nn.Parameter(library.tensor(values, dtype=getattr(library, dtype)))
        for values in START
    ]
    optimizer = getattr(library.optim, name)(parameters, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss = sum(((p * p).sum() * (i + 1) + p.sin().sum()) for i, p in enumerate(parameters))
        loss.backward()
        if step in (0, 3):
            parameters[1].grad = None
        optimizer.step()
    return parameters, optimizer


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=NAMES)
def test_same_trajectory_as_pytorch(name, options, dtype):
    torch = pytest.importorskip("torch")
    theirs, their_optimizer = train(torch, name, {**options, "foreach": False}, dtype)
    ours, our_optimizer = train(taeda, name, {**options, "foreach": False}, dtype)
    tolerance = {"float32": 2e-5, "float64": 1e-12}[dtype]
    for a, b in zip(ours, theirs, strict=True):
        assert flat(a.tolist()) == pytest.approx(flat(b.tolist()), rel=tolerance, abs=tolerance)
    mine, other = our_optimizer.state_dict(), their_optimizer.state_dict()
    assert mine["param_groups"] == other["param_groups"]
    assert list(mine["param_groups"][0]) == list(other["param_groups"][0])
    assert mine["state"].keys() == other["state"].keys()
    for key, state in other["state"].items():
        assert list(mine["state"][key]) == list(state)
        for part, value in state.items():
            assert (
                str(mine["state"][key][part].dtype).split(".")[1] == str(value.dtype).split(".")[1]
            )
            assert flat(mine["state"][key][part].tolist()) == pytest.approx(
                flat(value.tolist()), rel=20 * tolerance, abs=tolerance
            )
    assert repr(our_optimizer) == repr(their_optimizer)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_complex_parameters(name):
    torch = pytest.importorskip("torch")
    results = []
    for library in (taeda, torch):
        p = library.nn.Parameter(library.tensor([1 + 2j, -0.5j, 0.3 + 0j]))
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(library.optim, name)([p], lr=0.01, **options)
        for _ in range(5):
            optimizer.zero_grad()
            (p.abs() ** 2).sum().backward()
            optimizer.step()
        results.append([(z.real, z.imag) for z in p.tolist()])
    for a, b in zip(*results, strict=True):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "options"), CASES, ids=NAMES)
def test_going_on_from_a_saved_state_is_the_same_as_going_on(name, options):
    straight, _ = train(taeda, name, options, "float32", steps=10)
    parameters, first = train(taeda, name, options, "float32", steps=5)
    state = pickle.loads(pickle.dumps(copy.deepcopy(first.state_dict())))
    second = getattr(optim, name)(parameters, **options)
    second.load_state_dict(state)
    for _ in range(5):
        second.zero_grad()
        loss = sum(((p * p).sum() * (i + 1) + p.sin().sum()) for i, p in enumerate(parameters))
        loss.backward()
        second.step()
    for a, b in zip(straight, parameters, strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize(("name", "options"), CASES, ids=NAMES)
def test_steps_can_be_differentiated(name, options):
    """The derivative through two steps is what finite differences say."""
    if name == "Adafactor":
        pytest.skip("has no differentiable form, as in PyTorch")

    def after_two_steps(x):
        w = x.clone()
        optimizer = getattr(optim, name)([w], **{"lr": 0.1, **options}, differentiable=True)
        for _ in range(2):
            v = w.clone()
            (w.grad,) = taeda.autograd.grad((v**3).sum(), v, create_graph=True)
            optimizer.step()
        return w.sum()

    values, step = [1.0, 2.0, -0.5], 1e-6
    x = taeda.tensor(values, dtype=taeda.float64, requires_grad=True)
    (slope,) = taeda.autograd.grad(after_two_steps(x), x)
    for i in range(3):
        ends = []
        for sign in (1, -1):
            moved = list(values)
            moved[i] += sign * step
            start = taeda.tensor(moved, dtype=taeda.float64, requires_grad=True)
            ends.append(after_two_steps(start).item())
        assert slope[i].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


def test_rprop_that_can_be_differentiated_is_as_exact():
    ends = []
    for differentiable in (False, True):
        w = taeda.tensor([1.0, 2.0, -0.5], dtype=taeda.float64)
        optimizer = optim.Rprop([w], lr=0.02, differentiable=differentiable)
        for _ in range(12):
            w.grad = 3 * w * w
            optimizer.step()
        ends.append(w.tolist())
    assert ends[0] == pytest.approx(ends[1], rel=1e-14)


def parameter(*values):
    p = taeda.nn.Parameter(taeda.tensor(list(values)))
    p.grad = taeda.ones_like(p)
    return p


def test_learning_rates_can_be_tensors():
    a, b = parameter(1.0, 2.0), parameter(1.0, 2.0)
    rate = taeda.tensor(0.5)
    for p, lr in ((a, rate), (b, 0.5)):
        optim.SGD([p], lr=lr).step()
    assert a.tolist() == b.tolist() == [0.5, 1.5]
    rate.fill_(1.0)
    with pytest.raises(ValueError, match="1 element"):
        optim.SGD([a], lr=taeda.ones(2))


def test_closures_run_with_gradients_recorded():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with taeda.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert p.item() == 0.0
    assert optimizer.step() is None


def test_half_precision_and_strided_parameters():
    base = taeda.zeros(3, 4)
    p = taeda.nn.Parameter(base.t())
    p.grad = taeda.arange(12.0).reshape(4, 3)
    half = taeda.nn.Parameter(taeda.zeros(3, dtype=taeda.bfloat16))
    half.grad = taeda.ones(3, dtype=taeda.bfloat16)
    for optimizer in (optim.SGD([p, half], lr=1.0, momentum=0.5), optim.Adam([p, half], lr=0.0)):
        optimizer.step()
        assert p.tolist() == (-taeda.arange(12.0).reshape(4, 3)).tolist()
        assert half.tolist() == [-1.0] * 3
    assert base.t().tolist() == p.tolist()


def test_users_may_replace_parameters_and_state():
    p = parameter(1.0, 1.0)
    optimizer = optim.Adam([p], lr=0.1)
    optimizer.step()
    state = optimizer.state.pop(p)
    bigger = parameter(1.0, 1.0, 1.0)
    state["exp_avg"] = taeda.zeros(3)
    state["exp_avg_sq"] = taeda.zeros(3)
    optimizer.param_groups[0]["params"][0] = bigger
    optimizer.state[bigger] = state
    optimizer.step()
    assert state["step"].item() == 2 and state["exp_avg"].tolist() == pytest.approx([0.1] * 3)


# Groups


def test_groups_have_their_own_options():
    a, b = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == 0.5
    c = parameter(1.0)
    optimizer.add_param_group({"params": c, "lr": 1.0})
    assert optimizer.param_groups[2]["momentum"] == 0
    optimizer.step()
    assert c.item() == 0.0


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        (lambda p: p, TypeError, "single Tensor"),
        (lambda p: [], ValueError, "empty parameter list"),
        (lambda p: {p}, TypeError, "set"),
        (lambda p: [{"params": {p}}], TypeError, "set"),
        (lambda p: [1], TypeError, "one of the params is int"),
        (lambda p: [p * 2], ValueError, "non-leaf"),
        (lambda p: [{"params": [p]}, {"params": [p]}], ValueError, "more than one group"),
        (lambda p: [("a", p), p], ValueError, "names"),
    ],
)
def test_bad_parameters_are_refused(params, error, words):
    with pytest.raises(error, match=words):
        optim.SGD(params(parameter(1.0)))


def test_a_parameter_twice_in_a_group_warns():
    p = parameter(1.0)
    with pytest.warns(UserWarning, match="twice"):
        optim.SGD([p, p])


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("SGD", {"lr": -1}, "Invalid learning rate"),
        ("SGD", {"momentum": -1}, "Invalid momentum"),
        ("SGD", {"nesterov": True}, "Nesterov momentum requires"),
        ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0"),
        ("Adam", {"eps": -1}, "Invalid epsilon"),
        ("AdamW", {"weight_decay": -1}, "Invalid weight_decay"),
        ("Adam", {"lr": taeda.tensor(0.1), "foreach": True}, "lr as a Tensor"),
        ("Adam", {"betas": (0.9, taeda.tensor(0.9))}, "both floats or both Tensors"),
        ("Rprop", {"etas": (1.0, 0.5)}, "Invalid eta values"),
        ("ASGD", {"weight_decay": -1}, "Invalid weight_decay"),
        ("RMSprop", {"alpha": -1}, "Invalid alpha"),
        ("Adadelta", {"rho": 2}, "Invalid rho"),
    ],
)
def test_bad_options_are_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        getattr(optim, name)([parameter(1.0)], **options)


def test_contradicting_implementations_are_refused():
    with pytest.raises(RuntimeError, match="`fused` and `foreach`"):
        optim.Adam([parameter(1.0)], fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="`fused` does not support"):
        optim.SGD([parameter(1.0)], fused=True, differentiable=True)


def test_what_does_not_fit_is_named_and_nothing_is_changed():
    a, b = parameter(1.0), parameter(1.0, 2.0)
    optimizer = optim.Adam([("first", a), ("second", b)])
    optimizer.step()
    before = a.tolist()
    a.grad, b.grad = taeda.ones_like(a), taeda.ones_like(b)
    optimizer.state[b]["exp_avg"] = taeda.zeros(3)
    with pytest.raises(RuntimeError, match=r"'second' has shape.*'exp_avg' has shape"):
        optimizer.step()
    assert a.tolist() == before


def test_zero_grad():
    p, q = parameter(1.0), taeda.nn.Parameter(taeda.ones(1))
    optimizer = optim.SGD([p, q])
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0.0] and q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


# State


def test_state_goes_by_position_without_names():
    a, b = parameter(1.0), parameter(2.0, 3.0)
    source = optim.SGD([a, b], momentum=0.9)
    source.step()
    target = optim.SGD([parameter(1.0), parameter(2.0, 3.0)], momentum=0.9, lr=7.0)
    target.load_state_dict(source.state_dict())
    first, second = target.param_groups[0]["params"]
    assert target.state[second]["momentum_buffer"].tolist() == [1.0, 1.0]
    assert target.param_groups[0]["lr"] == 1e-3
    assert first in target.state and a not in target.state
    with pytest.raises(ValueError, match="match the size"):
        optim.SGD([a]).load_state_dict(source.state_dict())
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([{"params": [a]}, {"params": [b]}]).load_state_dict(source.state_dict())


def test_state_goes_by_name_where_both_sides_have_names():
    def named(**grads):
        result = []
        for name, grad in grads.items():
            p = parameter(1.0, 1.0)
            p.grad = taeda.full((2,), grad)
            result.append((name, p))
        return result

    source = optim.SGD(named(a=1.0, b=2.0), momentum=0.9)
    source.step()
    assert source.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    reordered = optim.SGD(named(b=0.0, a=0.0), momentum=0.9)
    reordered.load_state_dict(source.state_dict())
    b, a = reordered.param_groups[0]["params"]
    assert reordered.state[a]["momentum_buffer"].tolist() == [1.0, 1.0]
    assert reordered.state[b]["momentum_buffer"].tolist() == [2.0, 2.0]
    assert reordered.param_groups[0]["param_names"] == ["b", "a"]
    renamed = optim.SGD(named(a=0.0, c=0.0), momentum=0.9)
    with pytest.raises(ValueError, match=r"the optimizer has \['c'\].*the state dict has \['b'\]"):
        renamed.load_state_dict(source.state_dict())


def test_loaded_state_takes_its_parameters_dtype():
    source = optim.Adam([parameter(1.0)])
    source.step()
    p = taeda.nn.Parameter(taeda.ones(1, dtype=taeda.float64))
    target = optim.Adam([p])
    target.load_state_dict(source.state_dict())
    assert target.state[p]["exp_avg"].dtype == taeda.float64
    assert target.state[p]["step"].dtype == taeda.float32


def test_state_passes_both_ways_between_the_libraries():
    torch = pytest.importorskip("torch")
    _, ours = train(taeda, "Adam", {}, "float32", steps=3)
    _, theirs = train(torch, "Adam", {}, "float32", steps=3)

    def moved(state, library):
        if isinstance(state, dict):
            return {k: moved(v, library) for k, v in state.items()}
        return library.tensor(state.tolist()) if hasattr(state, "tolist") else state

    ours.load_state_dict(moved(theirs.state_dict(), taeda))
    theirs.load_state_dict(moved(ours.state_dict(), torch))


def test_optimizers_can_be_copied_and_pickled():
    p = parameter(1.0)
    optimizer = optim.Adam([p], lr=0.3)
    optimizer.register_step_pre_hook(lambda *args: None)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (q,) = other.param_groups[0]["params"]
        assert q is not p and q.tolist() == p.tolist()
        q.grad = taeda.ones(1)
        other.step()
        assert other.state[q]["step"].item() == 2
    assert optimizer.state[p]["step"].item() == 1


# Hooks


def test_step_hooks_run_in_order():
    p = parameter(1.0)
    optimizer, calls = optim.SGD([p], lr=0.5), []
    handles = [
        optim.optimizer.register_optimizer_step_pre_hook(lambda *a: calls.append("global pre")),
        optimizer.register_step_pre_hook(
            lambda o, args, kwargs: calls.append(("pre", args, kwargs))
        ),
        optimizer.register_step_post_hook(lambda *a: calls.append(("post", p.item()))),
        optim.optimizer.register_optimizer_step_post_hook(lambda *a: calls.append("global post")),
    ]
    optimizer.step()
    assert calls == ["global pre", ("pre", (optimizer,), {}), ("post", 0.5), "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 4


def test_pre_hooks_may_change_the_arguments():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.5)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: 42}))
    assert optimizer.step() == 42
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="pre-hook must return"):
        optimizer.step()


def test_hooks_run_once_in_subclasses_that_call_super():
    class Louder(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    optimizer, calls = Louder([parameter(1.0)]), []
    optimizer.register_step_post_hook(lambda *args: calls.append(1))
    optimizer.step()
    assert calls == [1]


def test_state_dict_hooks():
    optimizer, calls = optim.SGD([parameter(1.0)]), []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(
        lambda o, state: {k: v for k, v in state.items() if k != "more"}
    )
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("second"))
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("first"), prepend=True)
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert calls == ["pre", "first", "second"]


def test_users_can_write_optimizers():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @taeda.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.add_(p.grad.sign(), alpha=-group["lr"])

    p = parameter(1.0, 2.0)
    optimizer = Sign([p], lr=0.5)
    optimizer.step()
    assert p.tolist() == [0.5, 1.5]
    optimizer.load_state_dict(optimizer.state_dict())
    with pytest.raises(NotImplementedError, match="must define step"):
        optim.Optimizer([p], {}).step()


def test_an_optimizer_around_another():
    class Around(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._patch_step_function()  # as packages do

        def step(self, closure=None):
            return self.inner.step(closure)

    p = taeda.nn.Parameter(taeda.ones(1))
    p.grad = taeda.ones(1)
    around, seen = Around(optim.SGD([p], lr=0.5)), []
    around.step()
    assert p.item() == 0.5
    around.register_step_post_hook(lambda *given: seen.append(given[0]))
    around.step()
    assert p.item() == 0 and seen == [around]
