"""What the tests of taeda.nn share: PyTorch, where it is installed, and ways to compare with it."""

import numpy as np
import pytest

import taeda


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch")


def converted(value, memo=None):
    """The same values as torch tensors, in any nesting; one tensor stays one tensor."""
    import torch

    memo = {} if memo is None else memo
    if isinstance(value, taeda.Tensor):
        if id(value) not in memo:
            copied = torch.from_numpy(np.array(value.detach().numpy()))
            memo[id(value)] = copied.requires_grad_(value.requires_grad)
        return memo[id(value)]
    if isinstance(value, (tuple, list)):
        return type(value)(converted(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: converted(v, memo) for k, v in value.items()}
    return value


def assert_same(actual, expected, rtol=1e-5, atol=1e-6):
    """Equal shapes, dtypes and, but for rounding, values, in any nesting."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, rtol, atol)
        return
    if expected is None:
        assert actual is None
        return
    actual, expected = actual.detach().numpy(), expected.detach().numpy()
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def leaves(value):
    """The tensors that require grad in a nesting."""
    if isinstance(value, taeda.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return []


@pytest.fixture
def to_torch(torch):
    return converted


@pytest.fixture
def same():
    return assert_same


@pytest.fixture
def compare(torch):
    """Run ours and theirs on the same values; compare results and gradients."""

    def run(ours, theirs, args, kwargs=None, rtol=1e-4, atol=1e-5):
        kwargs = kwargs or {}
        their_args, their_kwargs = converted((args, kwargs))
        mine, others = leaves([args, kwargs]), _torch_leaves([their_args, their_kwargs], torch)
        for leaf in mine:
            leaf.grad = None
        taeda.manual_seed(9)
        actual = ours(*args, **kwargs)
        torch.manual_seed(9)
        expected = theirs(*their_args, **their_kwargs)
        assert_same(actual, expected, rtol, atol)
        first, their_first = actual, expected
        while isinstance(first, (tuple, list)):
            first, their_first = first[0], their_first[0]
        if not first.requires_grad:
            return
        weight = taeda.linspace(0.5, 1.5, first.numel(), dtype=first.dtype).reshape(first.shape)
        (first * weight).sum().backward()
        (their_first * converted(weight)).sum().backward()
        for a, e in zip(mine, others, strict=True):
            assert_same(a.grad, e.grad, rtol, atol)

    return run


def _torch_leaves(value, torch):
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in _torch_leaves(v, torch)]
    if isinstance(value, dict):
        return _torch_leaves(list(value.values()), torch)
    return []
