"""Integer ops on paths of their own: shifts, counts, runs, sequences, few of the largest."""

from __future__ import annotations

import numpy as np
import pytest

import taeda


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_right_shifts(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array(
        [limits.min, limits.min + 1, *range(-3 if limits.min else 0, 4), limits.max], dtype
    )
    x = np.tile(x, 9)
    for by in range(limits.bits - (limits.min < 0)):
        np.testing.assert_array_equal((taeda.tensor(x) >> by).numpy(), x >> by)
        many = taeda.full((len(x),), by, dtype=getattr(taeda, dtype))
        np.testing.assert_array_equal((taeda.tensor(x) >> many).numpy(), x >> by)
    beyond = np.where(x < 0, -1, 0)
    for by in (limits.bits, 100):
        np.testing.assert_array_equal((taeda.tensor(x) >> by).numpy(), beyond)


@pytest.mark.parametrize("count,most", [(0, 1), (5, 3), (5000, 7), (20001, 4095), (9000, 4096)])
def test_counts(count: int, most: int) -> None:
    x = np.random.default_rng(count).integers(0, most + 1, count)
    np.testing.assert_array_equal(taeda.tensor(x).bincount().numpy(), np.bincount(x))
    got = taeda.tensor(x).bincount(minlength=most + 9).numpy()
    np.testing.assert_array_equal(got, np.bincount(x, minlength=most + 9))
    if count:
        x[count // 2] = -1
        with pytest.raises(RuntimeError, match="non-negative"):
            taeda.tensor(x).bincount()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
def test_runs(n: int) -> None:
    x = np.random.default_rng(n).integers(0, 3, n)
    begins = np.flatnonzero(np.diff(x, prepend=-1))
    values, inverse, counts = taeda.tensor(x).unique_consecutive(True, True)
    np.testing.assert_array_equal(values.numpy(), x[begins])
    np.testing.assert_array_equal(counts.numpy(), np.diff(begins, append=n))
    np.testing.assert_array_equal(inverse.numpy(), np.cumsum(np.diff(x, prepend=-1) != 0) - 1)
    np.testing.assert_array_equal(taeda.tensor(x).unique_consecutive().numpy(), x[begins])


def test_first_of_a_run_stays() -> None:
    x = taeda.tensor([-0.0, 0.0, 1.0, 0.0, -0.0])
    assert x.unique_consecutive().signbit().tolist() == [True, False, False]


@pytest.mark.parametrize("start,end,step", [(0, 40000, 1), (7, -70000, -3), (5, 5, 1), (-9, 3, 2)])
def test_sequences(start: int, end: int, step: int) -> None:
    got = taeda.arange(start, end, step)
    np.testing.assert_array_equal(got.numpy(), np.arange(start, end, step))


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "float64", "float16"])
@pytest.mark.parametrize("k", [0, 1, 3, 8, 9, 20])
@pytest.mark.parametrize("largest", [True, False])
def test_few_of_many(dtype: str, k: int, largest: bool) -> None:
    x = np.random.default_rng(k).integers(0, 60, (6, 200)).astype(dtype)
    x[1], x[2] = np.sort(x[1]), np.sort(x[2])[::-1]
    x[3] = 5
    if dtype.startswith("float"):
        x[4, ::50] = np.nan  # larger than all numbers
    values, places = taeda.tensor(x).topk(k, 1, largest)
    order = np.sort(x, 1)
    expected = order[:, ::-1][:, :k] if largest else order[:, :k]
    np.testing.assert_array_equal(values.numpy(), expected)
    np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), expected)
    assert all(len(set(row)) == k for row in places.tolist())
