"""Hooks: forward, backward, of one module and of all."""

import gc
import weakref

import pytest

import taeda
from taeda import nn
from taeda.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)


class Twice(nn.Module):
    def forward(self, x, add=0):
        return x * 2 + add


class Two(nn.Module):
    def forward(self, x, y, flag=None):
        return x * 2, y * 3


def x():
    return taeda.ones(2, requires_grad=True)


def test_forward_pre_hooks():
    m = Twice()
    seen = []
    handle = m.register_forward_pre_hook(lambda m, args: seen.append(args))
    assert m(3) == 6 and seen == [(3,)]
    m.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert m(3) == 8
    m.register_forward_pre_hook(lambda m, args: (args[0] * 10,), prepend=True)
    assert m(3) == 62 and seen[-1] == (30,)
    handle.remove()
    handle.remove()
    m(3)
    assert len(seen) == 3
    m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"add": 5}), with_kwargs=True)
    assert m(3) == 67
    m.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        m(3)


def test_forward_hooks():
    m = Twice()
    seen = []
    m.register_forward_hook(lambda m, args, out: seen.append((args, out)))
    assert m(3, add=1) == 7 and seen == [((3,), 7)]
    with m.register_forward_hook(lambda m, args, out: out + 1):
        assert m(3) == 7
    assert m(3) == 6
    first = m.register_forward_hook(
        lambda m, args, kwargs, out: out + kwargs["add"], with_kwargs=True
    )
    second = m.register_forward_hook(lambda m, args, out: out * 10, prepend=True)
    assert m(3, add=4) == 104
    assert next(iter(m._forward_hooks)) == second.id
    assert first.id in m._forward_hooks_with_kwargs
    first.remove()
    assert first.id not in m._forward_hooks_with_kwargs


def test_always_called_hooks():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    m = Fails()
    seen = []
    m.register_forward_hook(lambda m, args, out: seen.append("usual"))
    m.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError):
        m(3)
    assert seen == [None]
    m.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    with pytest.raises(ValueError), pytest.warns(UserWarning, match="silenced"):
        m(3)


def test_a_hook_may_remove_itself():
    m = Twice()
    handles = []

    def once(module, args, output):
        handles[0].remove()
        return output + 100

    handles.append(m.register_forward_hook(once))
    assert m(1) == 102 and m(1) == 2


def test_third_party_access_to_the_dictionaries():
    m = Twice()
    m._forward_hooks[-7] = lambda m, args, out: out + 1
    assert m(1) == 3
    m._forward_hooks.clear()
    assert m(1) == 2
    m._forward_pre_hooks = {-8: lambda m, args: 5}
    assert m(1) == 10
    assert len(m._backward_hooks) == 0 and len(m._state_dict_hooks) == 0


def test_modules_without_hooks_carry_nothing():
    m = nn.Linear(2, 2)
    m(taeda.ones(2))
    assert m._call_hooks is None and not any("hook" in key for key in m.__dict__)


def run_backward(lib, build):
    """What hooks see, the input's gradients and the output of one backward."""
    log = []
    m, inputs, loss = build(lib, log)
    loss(m(*inputs)).backward()
    grads = [i.grad.tolist() if getattr(i, "grad", None) is not None else None for i in inputs]
    return [plain(entry) for entry in log], grads


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value.tolist() if hasattr(value, "tolist") else value


def module_of(lib, kind):
    if kind == "two":
        return type("Two", (lib.nn.Module,), {"forward": Two.forward})()
    return type("Twice", (lib.nn.Module,), {"forward": Twice.forward})()


def scenario(kind, register, leaves=(True, True)):
    def build(lib, log):
        m = module_of(lib, kind)
        register(m, log)
        count = 2 if kind == "two" else 1
        inputs = [lib.ones(2, requires_grad=flag) for flag in leaves[:count]]
        if kind == "two":
            return m, inputs, lambda out: (out[0] * 5 + out[1]).sum()
        return m, inputs, lambda out: (out * 5).sum()

    return build


SCENARIOS = {
    "full": scenario(
        "one", lambda m, log: m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go)))
    ),
    "full, two inputs": scenario(
        "two", lambda m, log: m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go)))
    ),
    "full, one input without grad": scenario(
        "two",
        lambda m, log: m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go))),
        (True, False),
    ),
    "full, replaced": scenario(
        "one", lambda m, log: m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 7,))
    ),
    "pre": scenario(
        "one", lambda m, log: m.register_full_backward_pre_hook(lambda m, go: log.append(go))
    ),
    "pre, replaced": scenario(
        "two",
        lambda m, log: m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3, go[1] * 2)),
    ),
    "pre and full": scenario(
        "one",
        lambda m, log: (
            m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,)),
            m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go))),
            m.register_full_backward_hook(lambda m, gi, go: log.append("first"), prepend=True),
        ),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_backward_hooks_like_torch(torch, name):
    assert run_backward(taeda, SCENARIOS[name]) == run_backward(torch, SCENARIOS[name])


def test_backward_hook_may_return_a_tensor():
    m, a = Twice(), x()
    m.register_full_backward_hook(lambda m, gi, go: gi[0] * 7)
    m(a).sum().backward()
    assert a.grad.tolist() == [14.0, 14.0]


def test_backward_hook_without_input_gradients():
    m, log = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda m, gi, go: log.append((gi, plain(go))))
    m(taeda.ones(2)).sum().backward()
    assert log == [((None,), ([1.0],))]
    m.register_full_backward_hook(lambda m, gi, go: (taeda.ones(2),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        m(taeda.ones(2)).sum().backward()


def test_backward_hook_with_a_wrong_number_of_gradients():
    m = Twice()
    m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input"):
        m(x()).sum().backward()


def test_backward_hook_twice_and_double_backward():
    m, log = Twice(), []
    m.register_full_backward_hook(lambda m, gi, go: log.append(1))
    a = x()
    out = m(a * a).sum()
    out.backward(retain_graph=True)
    out.backward()
    assert len(log) == 2
    b = x()
    (grad,) = taeda.autograd.grad((m(b * b) * m(b)).sum(), b, create_graph=True)
    grad.sum().backward()
    assert b.grad.tolist() == [24.0, 24.0]


def test_backward_hooks_of_no_grad_calls():
    m = Twice()
    m.register_full_backward_hook(lambda m, gi, go: 1 / 0)
    with taeda.no_grad():
        assert m(x()).tolist() == [2.0, 2.0]


def test_backward_hook_on_odd_outputs():
    class Odd(nn.Module):
        def forward(self, x):
            return {"out": x * 2}

    m = Odd()
    m.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="Tensor or a tuple of Tensors"):
        m(x())


def test_the_two_kinds_of_backward_hooks_do_not_mix():
    m = Twice()
    m.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        m.register_backward_hook(lambda m, gi, go: None)
    n = Twice()
    log = []
    n.register_backward_hook(lambda m, gi, go: log.append(plain(go)))
    n(x()).sum().backward()
    assert log == [([1.0, 1.0],)]


def test_hooks_of_all_modules():
    log = []
    handles = [
        register_module_forward_pre_hook(lambda m, args: log.append("pre")),
        register_module_forward_hook(lambda m, args, out: log.append("forward")),
        register_module_full_backward_pre_hook(lambda m, go: log.append("backward pre")),
        register_module_full_backward_hook(lambda m, gi, go: log.append("backward")),
    ]
    try:
        m = Twice()
        m.register_forward_hook(lambda m, args, out: log.append("own"))
        m(x()).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["pre", "forward", "own", "backward pre", "backward"]
    assert nn.Module._call_hooks is None
    Twice()(1)
    assert len(log) == 5


def test_hook_of_all_modules_replaces_the_output():
    with register_module_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True):
        assert Twice()(1) == 3
    assert Twice()(1) == 2


def test_registration_hooks():
    log = []
    handles = [
        register_module_parameter_registration_hook(lambda m, n, p: log.append(("parameter", n))),
        register_module_buffer_registration_hook(lambda m, n, b: log.append(("buffer", n))),
        register_module_module_registration_hook(lambda m, n, s: log.append(("module", n))),
    ]
    try:
        m = nn.Module()
        m.p = nn.Parameter(taeda.ones(1))
        m.register_buffer("b", taeda.ones(1))
        m.s = nn.Identity()
        m.add_module("t", nn.Identity())
    finally:
        for handle in handles:
            handle.remove()
    assert log == [("parameter", "p"), ("buffer", "b"), ("module", "s"), ("module", "t")]
    replacement = nn.Parameter(taeda.zeros(1))
    with register_module_parameter_registration_hook(lambda m, n, p: replacement):
        m.q = nn.Parameter(taeda.ones(1))
    assert m.q is replacement


def test_a_handle_keeps_nothing_alive():
    m = Twice()
    handle = m.register_forward_hook(lambda m, args, out: None)
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None
    handle.remove()
