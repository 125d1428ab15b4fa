"""Few inner products of long vectors, as rows or columns of either side, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import taeda

DTYPES = [taeda.float32, taeda.float64, taeda.complex64, taeda.complex128]
FORMS = list(itertools.product(["plain", "t", "h", "strided"], repeat=2))


def side(rows: int, cols: int, form: str, dtype: taeda.dtype, seed: int) -> taeda.Tensor:
    """A matrix that lies as `form` says, between numbers that no result may see."""
    g = np.random.default_rng(seed)
    high, wide = (cols, rows) if form in ("t", "h") else (rows, cols)
    spare = 3 if form == "strided" else 0
    x = np.full((high, wide + spare), np.nan, np.complex128)
    x[:, :wide] = g.standard_normal((high, wide)) + 1j * g.standard_normal((high, wide))
    t = taeda.from_numpy(x if dtype.is_complex else x.real.copy()).to(dtype)[:, :wide]
    return t.mT if form == "t" else t.mH if form == "h" else t


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("forms", FORMS, ids="-".join)
def test_forms(forms, dtype):
    for m, n, k in [(2, 2, 64), (3, 5, 65), (8, 8, 127), (7, 3, 2049), (4, 6, 6001), (5, 7, 4096)]:
        a, b = side(m, k, forms[0], dtype, m), side(k, n, forms[1], dtype, n + 9)
        wide = np.complex128 if dtype.is_complex else np.float64
        x, y = a.numpy().astype(wide), b.numpy().astype(wide)
        room = 60 * taeda.finfo(dtype).eps * np.sqrt(k)
        assert np.abs((a @ b).numpy() - x @ y).max() < room
        start = taeda.ones(m, n, dtype=dtype)
        added = taeda.addmm(start, a, b, beta=2, alpha=-0.5).numpy()
        assert np.abs(added - (2 - 0.5 * (x @ y))).max() < room


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_number_of_threads(dtype):
    a, b = side(4, 90_001, "plain", dtype, 0), side(90_001, 3, "plain", dtype, 1)
    before, results = taeda.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.append([a @ b, a @ a.mT, b.mT @ b])
    finally:
        taeda.set_num_threads(before)
    for others in results[1:]:
        for one, many in zip(results[0], others, strict=True):
            assert taeda.equal(one, many)


def test_numbers_that_are_none():
    a, b = side(4, 300, "plain", taeda.float32, 0), side(300, 3, "plain", taeda.float32, 1)
    b[299, 1] = float("inf")
    a[2, 7] = float("nan")
    product = (a @ b).numpy()
    assert np.isnan(product[2]).all()
    rest = product[[0, 1, 3]]
    assert np.isinf(rest[:, 1]).all() and np.isfinite(rest[:, [0, 2]]).all()
