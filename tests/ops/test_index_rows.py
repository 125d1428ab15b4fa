"""Indexing along a late dimension of many rows, and of flat elements, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import taeda


def integers(rng: np.random.Generator, high: int, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, high, shape)


@pytest.mark.parametrize("rows", [1, 3, 7, 8, 9, 11, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "complex128"])
def test_last_dimension_of_rows(rows: int, dtype: str) -> None:
    rng = np.random.default_rng(rows)
    x = (rng.standard_normal((rows, 13)) * 9).astype("int64" if dtype == "uint8" else "float64")
    x = x.astype(dtype)
    at = integers(rng, 13, (29,))
    t, i = taeda.tensor(x), taeda.tensor(at)
    np.testing.assert_array_equal(t.index_select(1, i).numpy(), x[:, at])
    np.testing.assert_array_equal(t[:, i - 13].numpy(), x[:, at])
    transposed = taeda.tensor(np.ascontiguousarray(x.T)).T
    np.testing.assert_array_equal(transposed[:, i].numpy(), x[:, at])
    spread = taeda.tensor(x[:, None].repeat(2, 1))  # (rows, 2, 13)
    np.testing.assert_array_equal(spread[..., i].numpy(), x[:, None].repeat(2, 1)[..., at])


@pytest.mark.parametrize(
    "shape,dim", [((5, 700), 0), ((12, 33), 0), ((40, 9), 1), ((3, 4, 600), 1)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
def test_writes_that_meet(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    rng = np.random.default_rng(7)
    source_shape = list(shape)
    source_shape[dim] = 50
    x = rng.integers(0, 5, shape).astype(dtype)
    y = rng.integers(0, 5, source_shape).astype(dtype)
    at = integers(rng, shape[dim], (50,))
    expected, copied = np.moveaxis(x.copy(), dim, 0), np.moveaxis(x.copy(), dim, 0)
    np.add.at(expected, at, np.moveaxis(y, dim, 0))
    for k, row in zip(at, np.moveaxis(y, dim, 0), strict=True):
        copied[k] = row
    t, i, s = taeda.tensor(x), taeda.tensor(at), taeda.tensor(y)
    np.testing.assert_array_equal(
        t.index_add(dim, i, s).numpy(), np.moveaxis(expected, 0, dim), strict=True
    )
    np.testing.assert_array_equal(t.index_copy(dim, i, s).numpy(), np.moveaxis(copied, 0, dim))


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 2000])
def test_elements_of_a_vector(count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.standard_normal(301).astype("float32")
    at = rng.integers(-301, 301, (count,))
    t, i = taeda.tensor(x), taeda.tensor(at)
    np.testing.assert_array_equal(t.take(i).numpy(), x[at])
    np.testing.assert_array_equal(t[i].numpy(), x[at])
    every_other = taeda.tensor(x.repeat(2))[::2]
    np.testing.assert_array_equal(every_other[i].numpy(), x[at])
    backwards = taeda.tensor(at[::-1].copy()).flip(0)
    np.testing.assert_array_equal(t[backwards].numpy(), x[at])


@pytest.mark.parametrize("wrong", [-302, 301, 2**62])
def test_elements_outside(wrong: int) -> None:
    x, at = taeda.zeros(301), taeda.zeros(1500, dtype=taeda.int64)
    at[1400] = wrong
    with pytest.raises(IndexError, match=f"tried to access index {wrong} on a tensor of 301"):
        x.take(at)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        x[at]


@pytest.mark.parametrize("size", [1, 700, 9000])
@pytest.mark.parametrize("count", [1, 511, 1025])
def test_gather_and_scatter_along_rows(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    x, at = rng.standard_normal((3, size)), integers(rng, size, (3, count))
    y = rng.standard_normal((3, count))
    t, i, s = taeda.tensor(x), taeda.tensor(at), taeda.tensor(y)
    np.testing.assert_array_equal(t.gather(1, i).numpy(), np.take_along_axis(x, at, 1))
    added, written = x.copy(), x.copy()
    for r in range(3):
        np.add.at(added[r], at[r], y[r])
        for k in range(count):
            written[r, at[r, k]] = y[r, k]
    np.testing.assert_allclose(t.scatter_add(1, i, s).numpy(), added, rtol=1e-14)
    np.testing.assert_array_equal(t.scatter(1, i, s).numpy(), written)
    at[2, count - 1] = size
    with pytest.raises(RuntimeError, match=f"index {size} is out of bounds for dimension 1"):
        t.gather(1, taeda.tensor(at))


@pytest.mark.parametrize("width", [1, 40, 300, 5000])
@pytest.mark.parametrize("reduce", ["sum", "amax", "prod"])
def test_rows_scattered_to_rows(width: int, reduce: str) -> None:
    rng = np.random.default_rng(width)
    x, y = rng.standard_normal((9, width)), rng.standard_normal((40, width))
    at = integers(rng, 9, (40,))
    combine = {"sum": np.add, "amax": np.maximum, "prod": np.multiply}[reduce]
    expected = x.copy()
    for k, row in zip(at, y, strict=True):
        expected[k] = combine(expected[k], row)
    spread = taeda.tensor(at)[:, None].expand(40, width)
    got = taeda.tensor(x).scatter_reduce(0, spread, taeda.tensor(y), reduce)
    np.testing.assert_array_equal(got.numpy(), expected)
