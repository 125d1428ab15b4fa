"""Least squares of matrices large enough for our own reflectors, against NumPy's."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402
from taeda import linalg as L  # noqa: E402
from tests.ops.matrices import matrix  # noqa: E402

DRIVERS = ["gels", "gelsy", "gelsd", "gelss"]
REAL = [taeda.float32, taeda.float64]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize(
    "size", [(2, 2, 1), (9, 7, 3), (40, 40, 3), (130, 41, 1), (90, 64, 70), (64, 90, 5)], ids=str
)
def test_full_rank(size, dtype, driver):
    m, n, many = size
    a, b = matrix(m, n, dtype=dtype), matrix(m, many, dtype=dtype, seed=1)
    got = L.lstsq(a, b, driver=driver)
    left, right = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
    x, residuals, _, values = np.linalg.lstsq(left, right, rcond=None)
    error = 2e3 * taeda.finfo(dtype).eps
    close = error * (values[0] / values[-1])
    assert np.abs(got.solution.numpy() - x).max() < close * np.abs(x).max()
    if driver != "gels":
        assert got.rank == min(m, n)
    if driver in ("gelsd", "gelss"):
        assert np.abs(got.singular_values.numpy() - values).max() < error * values[0]
    if m > n and driver != "gelsy":
        assert np.abs(got.residuals.numpy() / residuals - 1).max() < error
    again = L.lstsq(a.mT.contiguous().mT, b.mT.contiguous().mT, driver=driver).solution
    assert taeda.equal(got.solution, again)


@pytest.mark.parametrize("driver", DRIVERS[1:])
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("size", [(150, 60, 7), (12, 5, 2), (30, 30, 7), (4, 9, 3)], ids=str)
def test_low_rank(size, dtype, driver):
    m, n, rank = size
    a = matrix(m, rank, dtype=dtype) @ matrix(rank, n, dtype=dtype, seed=2)
    b = matrix(m, 4, dtype=dtype, seed=1)
    got = L.lstsq(a, b, driver=driver, rcond=1e-4)
    assert got.rank == rank
    want = np.linalg.pinv(a.numpy().astype(np.float64), rcond=1e-4) @ b.numpy()
    error = 1e4 * taeda.finfo(dtype).eps
    assert np.abs(got.solution.numpy() - want).max() < error * np.abs(want).max()


@pytest.mark.parametrize("driver", DRIVERS)
def test_right_sides_that_are_zero_or_not_finite(driver):
    a, b = matrix(120, 50), matrix(120, 3, seed=1)
    assert (L.lstsq(a, b * 0, driver=driver).solution == 0).all()
    b[5, 1] = float("nan")
    assert L.lstsq(a, b, driver=driver).solution.shape == (50, 3)


def test_a_column_of_zeros_has_no_full_rank():
    a = matrix(100, 50)
    a[:, 0] = 0
    with pytest.raises(taeda.linalg.LinAlgError):
        L.lstsq(a, matrix(100, 2), driver="gels")
    a = taeda.zeros(100, 50, dtype=taeda.float64)
    assert L.lstsq(a, matrix(100, 2), driver="gelsy").rank == 0


def test_batches_and_threads():
    a, b = matrix(3, 200, 60), matrix(3, 200, 2, seed=1)
    before = taeda.get_num_threads()
    try:
        for driver in DRIVERS:
            alone = taeda.stack([L.lstsq(a[i], b[i], driver=driver).solution for i in range(3)])
            for threads in (1, 2, 3):
                taeda.set_num_threads(threads)
                assert taeda.equal(L.lstsq(a, b, driver=driver).solution, alone)
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("dtype", [*REAL, taeda.complex64, taeda.complex128], ids=str)
def test_one_right_side_of_triangles(dtype):
    n = 70
    a = matrix(n, n, dtype=dtype).tril(-1) + 9 * taeda.eye(n, dtype=dtype)
    b = matrix(n, 1, dtype=dtype, seed=1)
    error = 1e3 * taeda.finfo(dtype).eps
    for upper, unit in [(False, False), (True, False), (False, True)]:
        t = a.mH if upper else a
        x = L.solve_triangular(t, b, upper=upper, unitriangular=unit)
        full = t - taeda.diag(t.diagonal()) + taeda.eye(n, dtype=dtype) if unit else t
        size = float(x.abs().max()) * 20
        assert float((full @ x - b).abs().max()) < error * size
    x = taeda.cholesky_solve(b, a)
    assert float((a @ (a.mH @ x) - b).abs().max()) < error * float(x.abs().max()) * 200
    inverse = taeda.cholesky_inverse(a)
    assert taeda.equal(inverse.tril(-1), inverse.mH.resolve_conj().tril(-1))
    assert float((a @ a.mH @ inverse - taeda.eye(n, dtype=dtype)).abs().max()) < error * 10
