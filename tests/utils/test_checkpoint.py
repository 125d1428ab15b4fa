"""Checkpointing changes memory and time, never results."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import taeda
from taeda import nn
from taeda.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def network():
    taeda.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
    )


def gradients(run):
    model = network()
    x = taeda.arange(8.0).reshape(2, 4).div(8).requires_grad_()
    taeda.manual_seed(1)
    out = run(model, x)
    after = taeda.rand(2).tolist()
    out.square().sum().backward()
    return [out.tolist(), after, x.grad.tolist(), *(p.grad.tolist() for p in model.parameters())]


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("form", ["whole", "sequential", "nested", "twice"])
def test_results_are_those_without(use_reentrant, form):
    options = {"use_reentrant": use_reentrant}

    def run(model, x):
        if form == "whole":
            return checkpoint(model, x, **options)
        if form == "sequential":
            return checkpoint_sequential(model, 3, x, **options)
        if form == "nested":
            return checkpoint(lambda v: checkpoint(model[:3], v, **options).sin(), x, **options)
        return checkpoint(model[3:], checkpoint(model[:3], x, **options), **options)

    def plain(model, x):
        return model[:3](x).sin() if form == "nested" else model(x)

    if form == "nested":
        # Only the first half has gradients there.
        def compared(function):
            model = network()
            x = taeda.arange(8.0).reshape(2, 4).div(8).requires_grad_()
            taeda.manual_seed(1)
            function(model, x).square().sum().backward()
            return [x.grad.tolist(), model[0].weight.grad.tolist()]

        assert compared(run) == compared(plain)
    else:
        assert gradients(run) == gradients(plain)


def test_memory_is_given_back():
    def deep(x):
        for _ in range(20):
            x = x.sin()
        return x

    def held(run):
        x = taeda.ones(1000, 1000, requires_grad=True)
        before = taeda._C.cpu_memory_stats()["allocated"]
        y = run(x)
        return taeda._C.cpu_memory_stats()["allocated"] - before, y

    plain, _ = held(deep)
    for use_reentrant in (True, False):
        less, y = held(lambda x, r=use_reentrant: checkpoint(deep, x, use_reentrant=r))
        assert less < plain / 5
        y.sum().backward()


@pytest.mark.parametrize("early", [True, False])
def test_early_stop(early):
    calls = []

    def function(x):
        y = x.sin()
        calls.append("saved")
        z = y + 1
        calls.append("end")
        return z

    x = taeda.ones(3, requires_grad=True)
    checkpoint(function, x, use_reentrant=False, early_stop=early).sum().backward()
    assert calls == ["saved", "end"] + ([] if early else ["saved", "end"])
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, use_reentrant=False)
    calls.clear()
    y.sum().backward()
    assert calls == ["saved", "end"]


def test_second_derivatives_and_repeated_backward():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda v: (v * v).sin(), x, use_reentrant=False)
    (first,) = taeda.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = taeda.autograd.grad(first.sum(), x)
    plain = (x * x).sin()
    (one,) = taeda.autograd.grad(plain.sum(), x, create_graph=True)
    (two,) = taeda.autograd.grad(one.sum(), x)
    assert first.tolist() == one.tolist() and second.tolist() == two.tolist()
    z = checkpoint(lambda v: v.exp().sin(), x, use_reentrant=False)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * x.exp() * x.exp().cos()).tolist())


def test_keyword_arguments_and_several_results():
    x = taeda.ones(3, requires_grad=True)
    a, (b, n) = checkpoint(
        lambda v, scale: (v.sin(), (v.exp() * scale, 3)), x, scale=2.0, use_reentrant=False
    )
    assert n == 3
    (a + b).sum().backward()
    assert x.grad.tolist() == pytest.approx((x.cos() + 2 * x.exp()).tolist())
    y, n = checkpoint(lambda v: (v.sin(), 3), x, use_reentrant=True)
    x.grad = None
    y.sum().backward()
    assert n == 3 and x.grad.tolist() == x.cos().tolist()


def test_contexts():
    seen = []

    @contextlib.contextmanager
    def noting(name):
        seen.append(name)
        yield

    x = taeda.ones(3, requires_grad=True)
    y = checkpoint(
        taeda.sin, x, use_reentrant=False, context_fn=lambda: (noting("first"), noting("second"))
    )
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "second"]


def test_other_computations_the_second_time_are_reported():
    calls = []

    def shrinking(x):
        calls.append(1)
        return (x[: 4 - len(calls)] * x[: 4 - len(calls)]).sin()

    x = taeda.ones(3, requires_grad=True)
    y = checkpoint(shrinking, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()
    calls.clear()
    y = checkpoint(lambda v: calls.append(1) or (v.sin() if len(calls) == 1 else v + 2), x,
                   use_reentrant=False)  # fmt: skip
    with pytest.raises(CheckpointError, match="different number"):
        y.sum().backward()


def test_reentrance_refuses_what_it_cannot_do():
    x = taeda.ones(3, requires_grad=True)
    y = checkpoint(taeda.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        taeda.autograd.grad(y.sum(), x)
    y = checkpoint(taeda.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        y.sum().backward(inputs=[x])
    assert x.grad is None
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(taeda.sin, x, use_reentrant=True, scale=2)
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(taeda.sin, x, use_reentrant=True, context_fn=lambda: (None, None))
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(taeda.sin, x, use_reentrant=False, determinism_check="x")


def test_warnings():
    with pytest.warns(UserWarning, match="passed explicitly"):
        checkpoint(taeda.sin, taeda.ones(3, requires_grad=True))
    with pytest.warns(UserWarning, match="None of the inputs"):
        assert not checkpoint(nn.Linear(2, 2), taeda.ones(2), use_reentrant=True).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint(nn.Linear(2, 2), taeda.ones(2), use_reentrant=False).requires_grad
        with taeda.no_grad():
            assert not checkpoint(nn.Linear(2, 2), taeda.ones(2), use_reentrant=False).requires_grad


@pytest.mark.parametrize("way", ["argument", "context"])
def test_debugging_lists_where_tensors_were_saved(way):
    calls = []

    def other_the_second_time(x):
        calls.append(1)
        y = x.sin()
        return y.exp() if len(calls) == 1 else y + 1

    x = taeda.ones(3, requires_grad=True)
    if way == "argument":
        y = checkpoint(other_the_second_time, x, use_reentrant=False, debug=True)
    else:
        with set_checkpoint_debug_enabled(True):
            y = checkpoint(other_the_second_time, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different number") as info:
        y.sum().backward()
    first, again = str(info.value).split("Tensors saved during the recomputation:")
    assert "Tensors saved during the original forward:" in first
    assert [first.count("y = x.sin()"), first.count("y.exp()")] == [1, 1]
    assert [again.count("y = x.sin()"), again.count("y.exp()")] == [1, 0]
    assert "0: float32 [3] in File" in first and "test_checkpoint.py" in again


def test_debugging_can_be_switched_off_and_is_suggested():
    x = taeda.ones(3, requires_grad=True)
    calls = []

    def fewer(v):
        calls.append(1)
        return v.sin() if len(calls) == 1 else v + 2

    with set_checkpoint_debug_enabled(False):
        y = checkpoint(fewer, x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match="debug=True") as info:
        y.sum().backward()
    assert "Tensors saved" not in str(info.value)
    with set_checkpoint_debug_enabled(None):
        checkpoint(taeda.sin, x, use_reentrant=False, debug=True).sum().backward()
    assert taeda.allclose(x.grad, x.cos())
    with pytest.raises(ValueError, match="debug"):
        checkpoint(taeda.sin, x, use_reentrant=True, debug=True)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_autocast_is_the_same_when_backward_runs_outside_of_it(use_reentrant):
    layer = taeda.nn.Linear(4, 4)
    seen = []

    def function(x):
        y = layer(x).relu()
        seen.append((y.dtype, taeda.get_autocast_dtype("cpu")))
        return y

    found = []
    for wrapped in (True, False):
        x = taeda.linspace(-1, 1, 8).view(2, 4).requires_grad_()
        layer.zero_grad()
        with taeda.autocast("cpu", dtype=taeda.float16):
            if wrapped:
                y = checkpoint(function, x, use_reentrant=use_reentrant, early_stop=False)
            else:
                y = function(x)
        y.float().sum().backward()
        found.append((x.grad.tolist(), layer.weight.grad.tolist()))
    assert seen == [(taeda.float16, taeda.float16)] * 3
    assert found[0] == found[1] and not taeda.is_autocast_enabled()
