"""Long graphs, freed memory, and no cycles."""

import gc
import weakref

import pytest

import taeda


def used():
    return taeda._C.cpu_memory_stats()["allocated"]


@pytest.mark.slow
def test_a_million_operations_in_a_row():
    x = taeda.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1.0
    del y


def test_a_long_chain_is_freed_without_backward():
    x = taeda.ones(1, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    before = used()
    del y
    assert used() < before


def test_memory_is_flat_over_steps():
    x = taeda.rand(100, 100).requires_grad_()
    sizes = []
    gc.disable()
    try:
        for _ in range(20):
            y = (x @ x).tanh() + 1
            y[0].mul_(2)
            (y.exp() * y).sum().backward()
            x.grad = None
            del y
            sizes.append(used())
    finally:
        gc.enable()
    assert sizes[5] >= sizes[-1]


def test_no_cycles():
    gc.disable()
    try:
        x = taeda.ones(2, requires_grad=True)
        for make in (
            lambda: x.exp(),
            lambda: x.softmax(0),
            lambda: (x * 1).exp_(),
            lambda: x.max(0)[0],
            lambda: (x * 1)[:1].mul_(2),
        ):
            y = make()
            y.note = object()
            ref = weakref.ref(y)
            y.grad_fn
            del y
            assert ref() is None
    finally:
        gc.enable()


def test_saved_values_are_freed_by_backward():
    x = taeda.rand(1000, 1000).requires_grad_()
    y = x.exp().exp()
    before = used()
    y.sum().backward()
    del y
    assert used() < before


def test_hooks_that_refer_to_their_tensor_are_collected():
    def make():
        x = taeda.ones(2, requires_grad=True)
        x.register_hook(lambda g: (x, g)[1])
        return weakref.ref(x)

    ref = make()
    gc.collect()
    assert ref() is None


def test_dropped_leaf_still_runs_its_hooks():
    seen = []

    def make():
        x = taeda.ones(2, requires_grad=True)
        x.register_hook(lambda g: seen.append(g.tolist()))
        return x * 2

    make().sum().backward()
    assert seen == [[2.0, 2.0]]
