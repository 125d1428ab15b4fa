"""unique and unique_consecutive, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

CASES = {
    "vector": [3, 1, 2, 3, 1, 1],
    "matrix": [[1, 2, 1], [1, 2, 1], [3, 0, 3]],
    "one": [7],
    "zero-dim": 7,
    "empty": [],
    "bools": [True, False, True],
    "floats": [0.5, -1.0, 0.5],
}


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_unique(values):
    x = taeda.tensor(values)
    expected = np.unique(x.numpy().ravel(), return_inverse=True, return_counts=True)
    found = taeda.unique(x, return_inverse=True, return_counts=True)
    assert [f.flatten().tolist() for f in found] == [e.ravel().tolist() for e in expected]
    assert found[1].shape == x.shape and found[0].dtype is x.dtype
    assert taeda.equal(taeda.unique(x), found[0]) and taeda.equal(x.unique(sorted=False), found[0])
    only_counts = x.unique(return_counts=True)
    assert len(only_counts) == 2 and taeda.equal(only_counts[1], found[2])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    x = taeda.tensor(CASES["matrix"]).t()
    values, inverse, counts = taeda.unique(x, return_inverse=True, return_counts=True, dim=dim)
    expected = np.unique(x.numpy(), axis=dim, return_inverse=True, return_counts=True)
    assert values.tolist() == expected[0].tolist() and counts.tolist() == expected[2].tolist()
    assert taeda.equal(values.index_select(dim, inverse), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool", "complex64"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((500,), 0), ((300, 1), 0), ((1, 1, 40), -1), ((1,), 0)]
)
def test_unique_slices_of_one_element(dtype, shape, dim):
    x = taeda.randint(-30, 30, shape).to(getattr(taeda, dtype))
    values, inverse, counts = taeda.unique(x, return_inverse=True, return_counts=True, dim=dim)
    expected = np.unique(x.numpy().ravel(), return_counts=True)
    assert values.flatten().tolist() == expected[0].tolist()
    assert counts.tolist() == expected[1].tolist() and values.dim() == x.dim()
    assert taeda.equal(values.index_select(dim, inverse), x)
    assert taeda.equal(taeda.unique(x, dim=dim), values)
    flat = taeda.unique(x, return_inverse=True)
    assert taeda.equal(flat[0], values.flatten()) and taeda.equal(flat[0][flat[1]], x)
    assert taeda.equal(taeda.unique(x), flat[0])


def test_unique_consecutive():
    x = taeda.tensor([1, 1, 2, 2, 2, 1])
    values, inverse, counts = taeda.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 3, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2]
    assert x.unique_consecutive().tolist() == [1, 2, 1]
    rows = taeda.tensor([[1, 2], [1, 2], [3, 4], [1, 2]])
    values, counts = rows.unique_consecutive(return_counts=True, dim=0)
    assert values.tolist() == [[1, 2], [3, 4], [1, 2]] and counts.tolist() == [2, 1, 1]
    assert taeda.unique_consecutive(taeda.tensor([[1, 1], [1, 2]]), True)[1].shape == (2, 2)


def test_nan_is_never_the_same():
    assert len(taeda.unique(taeda.tensor([float("nan")] * 3))) == 3


@pytest.mark.parametrize("function", [taeda.unique, taeda.unique_consecutive])
def test_errors(function):
    name = function.__name__
    with pytest.raises(
        TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor"
    ):
        function([1, 2])
    with pytest.raises(IndexError, match="Dimension out of range"):
        function(taeda.ones(2), dim=1)
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        function(taeda.ones(0, 3), dim=1)
    with pytest.raises(NotImplementedError):
        function(taeda.ones(2, device="meta"))


@pytest.mark.parametrize("f", [taeda.unique, taeda.unique_consecutive])
def test_values_require_a_gradient_that_does_not_exist(f):
    x = taeda.ones(3, requires_grad=True)
    values, inverse, counts = f(x, return_inverse=True, return_counts=True)
    assert values.requires_grad and not inverse.requires_grad and not counts.requires_grad
    with pytest.raises(NotImplementedError, match="derivative for"):
        values.sum().backward()
