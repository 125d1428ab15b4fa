"""Products of float16 and bfloat16 whose sizes lead to kernels of their own, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

ROWS = [1, 2, 5, 8, 9, 32, 33]


def halves(name: str, *shape: int, seed: int = 0) -> taeda.Tensor:
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return taeda.from_numpy(x).to(getattr(taeda, name))


def as_double(x: taeda.Tensor) -> np.ndarray:
    return x.to(taeda.float64).numpy()


def check(ours: taeda.Tensor, expected: np.ndarray, scale: np.ndarray) -> None:
    """Within a rounding of the result, and of float32 sums of terms that add up to `scale`."""
    step = 2.0**-8 if ours.dtype == taeda.bfloat16 else 2.0**-11
    error = np.abs(as_double(ours) - expected)
    assert (error <= step * np.abs(expected) + 1e-6 * scale + 1e-7).all(), error.max()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize(("k", "n"), [(1, 7), (3, 40), (300, 130), (257, 521), (1, 1), (70, 1)])
def test_layouts(name: str, m: int, k: int, n: int) -> None:
    for turn_a in (False, True):
        for turn_b in (False, True):
            a = halves(name, k, m).t() if turn_a else halves(name, m, k)
            b = halves(name, n, k, seed=1).t() if turn_b else halves(name, k, n, seed=1)
            da, db = as_double(a), as_double(b)
            expected, scale = da @ db, np.abs(da) @ np.abs(db)
            check(a @ b, expected, scale)
            bias = halves(name, n, seed=2)
            check(taeda.addmm(bias, a, b), expected + as_double(bias), scale)
            if turn_b:
                check(taeda.nn.functional.linear(a, b.t()), expected, scale)
            if n == 1:
                check(taeda.mv(a, b[:, 0]), expected[:, 0], scale[:, 0])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 64, 50), (4, 300, 64), (3, 5, 1), (40, 3, 20)])
def test_batches(name: str, m: int, k: int, n: int) -> None:
    a, b = halves(name, 11, m, k), halves(name, 11, k, n, seed=1)
    expected = as_double(a) @ as_double(b)
    scale = np.abs(as_double(a)) @ np.abs(as_double(b))
    check(a @ b, expected, scale)
    check(a @ b.mT.contiguous().mT, expected, scale)
    check(a @ b[0], as_double(a) @ as_double(b[0]), np.abs(as_double(a)) @ np.abs(as_double(b[0])))
    start = halves(name, 11, m, n, seed=2)
    sum_of_both = taeda.baddbmm(start, a, b, beta=2)  # each of which is rounded
    step = 2.0**-8 if name == "bfloat16" else 2.0**-11
    error = np.abs(as_double(sum_of_both) - expected - 2 * as_double(start))
    assert (error <= 2 * step * (np.abs(expected) + 2 * np.abs(as_double(start)) + 1e-3)).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rows_with_gaps(name: str) -> None:
    a, w = halves(name, 3, 800)[:, ::2], halves(name, 90, 800, seed=1)[:, 3:403]
    scale = np.abs(as_double(a)) @ np.abs(as_double(w)).T
    check(a @ w.t(), as_double(a) @ as_double(w).T, scale)
    check(a[:1] @ w.t(), as_double(a[:1]) @ as_double(w).T, scale[:1])
    check(w @ a[0], as_double(w) @ as_double(a[0]), scale[0])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("m", [1, 2, 40])
def test_nan_and_infinity(name: str, m: int) -> None:
    a, w = taeda.ones(m, 300), taeda.ones(60, 300)
    w[3, 7] = float("nan")
    w[4, 299] = float("inf")
    a, w = a.to(getattr(taeda, name)), w.to(getattr(taeda, name))
    for result in (a @ w.t(), a @ w.t().contiguous()):
        assert result[:, 3].isnan().all()
        assert result[:, 4].isinf().all()
        assert result.isfinite().sum() == m * 58


@pytest.mark.parametrize("m", [1, 3, 20, 100])
def test_threads(m: int) -> None:
    before = taeda.get_num_threads()
    for name in ("float16", "bfloat16"):
        a, w = halves(name, m, 400), halves(name, 1500, 400, seed=1)
        results = []
        try:
            for threads in (1, 2, 3):
                taeda.set_num_threads(threads)
                results.append((a @ w.t(), a @ w.t().contiguous()))
        finally:
            taeda.set_num_threads(before)
        for other in results[1:]:
            assert all(taeda.equal(x, y) for x, y in zip(results[0], other, strict=True))
