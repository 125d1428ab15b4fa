"""What runs one backward over a batch of gradients: autograd.grad, and autograd.functional."""

import pytest

import taeda
from taeda.autograd.functional import hessian, jacobian


def double(*sizes):
    return taeda.randn(sizes, dtype=taeda.float64)


def close(a, b):
    return a.shape == b.shape and taeda.allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("create_graph", [False, True])
def test_grads_batched(create_graph):
    x, z = double(3).requires_grad_(), double(3).requires_grad_()
    y = x.sin() * x.sum()
    v = double(4, 3)
    kw = dict(retain_graph=True, create_graph=create_graph)
    found = taeda.autograd.grad(y, (x, z), v, is_grads_batched=True, allow_unused=True, **kw)
    rows = [taeda.autograd.grad(y, x, each, retain_graph=True)[0] for each in v]
    assert found[1] is None and close(found[0], taeda.stack(rows))
    assert found[0].requires_grad is create_graph
    total = x.sum()
    two = taeda.autograd.grad((y, total), x, (v, v[:, 0]), is_grads_batched=True)[0]
    assert close(two, taeda.stack(rows) + v[:, :1])


def test_grads_batched_errors():
    x = double(3).requires_grad_()
    with pytest.raises(RuntimeError, match="first dimension"):
        taeda.autograd.grad(x * 2, x, double(4, 4), is_grads_batched=True)
    with pytest.raises(ValueError, match="is_grads_batched"):
        taeda.autograd.grad(x.sum(), x, None, is_grads_batched=True)


def two(a, b):
    return a.sin() * b, (a * b).sum()


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian_and_hessian(strategy):
    a, b = double(3), double(3)
    ways = dict(vectorize=True, strategy=strategy)
    assert close(jacobian(taeda.sin, a, **ways), jacobian(taeda.sin, a))
    for ours, theirs in zip(jacobian(two, (a, b), **ways), jacobian(two, (a, b)), strict=True):
        for block, expected in zip(ours, theirs, strict=True):
            assert close(block, expected)
    constant = jacobian(lambda x: x.new_ones(2), a, **ways)
    assert tuple(constant.shape) == (2, 3) and not constant.any()
    ways = dict(vectorize=True, outer_jacobian_strategy=strategy)
    cube = lambda x: (x**3).sum() * x[0]  # noqa: E731
    assert close(hessian(cube, a, **ways), hessian(cube, a))
    product = lambda x, y: (x * y * y).sum()  # noqa: E731
    for ours, theirs in zip(
        hessian(product, (a, b), **ways), hessian(product, (a, b)), strict=True
    ):
        for block, expected in zip(ours, theirs, strict=True):
            assert close(block, expected)


def test_jacobian_errors():
    a = double(3)
    for error, ways in (
        (AssertionError, dict(strategy="x")),
        (NotImplementedError, dict(strategy="forward-mode")),
        (NotImplementedError, dict(strategy="forward-mode", vectorize=True, create_graph=True)),
        (RuntimeError, dict(strict=True, vectorize=True)),
    ):
        with pytest.raises(error):
            jacobian(taeda.sin, a, **ways)
