"""Linear algebra beside NumPy and SciPy in float64."""

from __future__ import annotations

import sys
import threading

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402
from taeda import linalg as L  # noqa: E402
from tests.ops.matrices import BATCHES, DTYPES, close, definite, matrix, strided  # noqa: E402

# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factors_multiply_to_the_matrix(batch, dtype):
    for a in strided(matrix(*batch, 4, 4, dtype=dtype)):
        p, lower, upper = L.lu(a)
        close(p @ lower @ upper, a, dtype)
        q, r = L.qr(a)
        close(q @ r, a, dtype)
        u, s, vh = L.svd(a)
        close(u @ taeda.diag_embed(s).to(dtype) @ vh, a, dtype)
        w, v = L.eig(a)
        close(v @ taeda.diag_embed(w), a.to(w.dtype) @ v, dtype)
    for a in strided(definite(*batch, dtype=dtype)):
        lower, upper = L.cholesky(a), L.cholesky(a, upper=True)
        close(lower @ lower.mH, a, dtype)
        close(upper.mH @ upper, a, dtype)
        assert taeda.equal(lower, lower.tril())
        for triangle in "LU":
            w, v = L.eigh(a, UPLO=triangle)
            close((v * w.unsqueeze(-2).to(dtype)) @ v.mH, a, dtype)


@pytest.mark.parametrize("n", [1, 2, 7, 12, 13])  # by ourselves up to 12
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cholesky_of_small_matrices(n, dtype):
    many = matrix(29, n, n, dtype=dtype)
    many = many @ many.mH + n * taeda.eye(n, dtype=dtype)
    many[11, n - 1, n - 1] = -1
    factors, info = L.cholesky_ex(many)
    for i, factor in enumerate(factors):
        alone = L.cholesky_ex(many[i])
        assert info[i] == alone.info == (n if i == 11 else 0)
        close(factor, alone.L, dtype)
    a = matrix(3, n, n, dtype=dtype)
    a = a @ a.mH + n * taeda.eye(n, dtype=dtype)
    lower, upper = L.cholesky(a), L.cholesky(a, upper=True)
    close(lower, taeda.tensor(np.linalg.cholesky(a.numpy())), dtype)
    close(upper, lower.mH, dtype)
    assert taeda.equal(upper, upper.triu())
    a[1, n - 1, n - 1] = -1
    a[2, n // 2, n // 2] = float("nan")
    for upper in (False, True):
        assert L.cholesky_ex(a, upper=upper).info.tolist() == [0, n, n // 2 + 1]


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4), (1, 1), (3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex64], ids=str)
def test_rectangles(m, n, dtype):
    a = matrix(2, m, n, dtype=dtype)
    k = min(m, n)
    for full in (False, True):
        u, s, vh = L.svd(a, full_matrices=full)
        assert u.shape == (2, m, m if full else k) and vh.shape == (2, n if full else k, n)
        close(u[..., :k] @ taeda.diag_embed(s).to(dtype) @ vh[..., :k, :], a, dtype)
        close(u.mH @ u, taeda.eye(u.shape[-1], dtype=dtype).expand(2, -1, -1), dtype)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        close(q @ r, a, dtype)
        close(q.mH @ q, taeda.eye(q.shape[-1], dtype=dtype).expand(2, -1, -1), dtype)
    assert L.qr(a, "r").Q.shape == (0,)
    p, lower, upper = L.lu(a)
    close(p @ lower @ upper, a, dtype)
    inverse = L.pinv(a)
    assert inverse.shape == (2, n, m)
    close(a @ inverse @ a, a, dtype)
    assert L.matrix_rank(a).tolist() == [k, k]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_solvers(dtype):
    for a in strided(matrix(2, 4, 4, dtype=dtype)):
        b = matrix(2, 4, 3, dtype=dtype, seed=1)
        close(a @ L.solve(a, b), b, dtype)
        close(L.solve(a, b.mT, left=False) @ a, b.mT, dtype)
        vectors = matrix(2, 4, dtype=dtype, seed=2)
        close(L.solve(a, vectors).unsqueeze(-1), L.solve(a, vectors.unsqueeze(-1)), dtype)
        close(a @ L.inv(a), taeda.eye(4, dtype=dtype).expand(2, -1, -1), dtype)
        lu, pivots = L.lu_factor(a)
        close(a.mH @ L.lu_solve(lu, pivots, b, adjoint=True), b, dtype)
        close(L.lu_solve(lu, pivots, b.mT, left=False) @ a, b.mT, dtype)
        close(L.lu_solve(lu, pivots, b.mT, left=False, adjoint=True) @ a.mH, b.mT, dtype)
        for upper in (False, True):
            t = (a.triu() if upper else a.tril()) + 3 * taeda.eye(4, dtype=dtype)
            close(t @ L.solve_triangular(t, b, upper=upper), b, dtype)
            close(L.solve_triangular(t, b.mT, upper=upper, left=False) @ t, b.mT, dtype)
            unit = t - taeda.diag_embed(t.diagonal(0, -2, -1)) + taeda.eye(4, dtype=dtype)
            close(unit @ L.solve_triangular(t, b, upper=upper, unitriangular=True), b, dtype)
            close(
                (t.mT @ taeda.triangular_solve(b, t, upper=upper, transpose=True).solution),
                b,
                dtype,
            )
            h = definite(2, dtype=dtype)
            factor = taeda.cholesky(h, upper=upper)
            close(h @ taeda.cholesky_solve(b, factor, upper=upper), b, dtype)
            close(
                h @ taeda.cholesky_inverse(factor, upper=upper),
                taeda.eye(4, dtype=dtype).expand(2, -1, -1),
                dtype,
            )
        for hermitian in (False, True):
            s = a + (a.mH if hermitian else a.mT)
            ld, pivots = L.ldl_factor(s, hermitian=hermitian)
            close(s @ L.ldl_solve(ld, pivots, b, hermitian=hermitian), b, dtype)


def test_solutions_broadcast():
    a, b = matrix(4, 4), matrix(7, 2, 4, 3, seed=1)
    for left, right in ((a, b), (a.expand(2, 4, 4), b), (a.expand(3, 1, 4, 4), b[:1])):
        x = L.solve(left, right)
        close(left @ x, right.expand(x.shape))
        x = L.solve_triangular(left, right, upper=True)
        close(left.triu() @ x, right.expand(x.shape))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
def test_least_squares(driver, dtype):
    a, b = matrix(2, 6, 3, dtype=dtype), matrix(2, 6, 2, dtype=dtype, seed=1)
    x, residuals, rank, values = L.lstsq(a, b, driver=driver)
    close(x, L.pinv(a) @ b, dtype)
    if driver != "gelsy":
        close(residuals, ((a @ x - b).abs() ** 2).sum(-2), dtype)
    if driver != "gels":
        assert rank.tolist() == [3, 3]
    if driver in ("gelsd", "gelss"):
        close(values, L.svdvals(a), dtype)
    close(L.lstsq(a, b[..., 0], driver=driver).solution, x[..., 0], dtype)
    close(L.lstsq(a.mH, b[..., :3, :], driver=driver).solution, L.pinv(a.mH) @ b[..., :3, :], dtype)
    for m, n, k in ((0, 3, 2), (3, 0, 2), (3, 3, 0), (0, 0, 0)):
        assert L.lstsq(matrix(2, m, n), matrix(2, m, k), driver=driver).solution.shape == (2, n, k)


def test_determinants():
    for dtype in DTYPES:
        a = matrix(3, 4, 4, dtype=dtype)
        expected = np.linalg.det(a.numpy())
        close(L.det(a), expected, dtype)
        sign, size = L.slogdet(a)
        close(sign * size.exp(), expected, dtype)
    negative = taeda.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert taeda.logdet(negative).isnan() and taeda.logdet(taeda.ones(2, 2)) == -taeda.inf
    assert L.det(taeda.ones(3, 3)) == 0 and L.slogdet(taeda.ones(3, 3)).logabsdet == -taeda.inf
    assert L.det(taeda.ones(2, 0, 0)).tolist() == [1, 1]


def test_norms_and_conditions():
    a = matrix(5, 4).numpy()
    t = taeda.from_numpy(a)
    for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
        close(L.matrix_norm(t, ord), np.asarray(np.linalg.norm(a, ord)))
        close(L.norm(t, ord), np.asarray(np.linalg.norm(a, ord)))
        close(L.cond(t[:4], ord), np.asarray(np.linalg.cond(a[:4], ord)))
        kept = L.matrix_norm(t.expand(2, 5, 4), ord, dim=(2, 1), keepdim=True)
        assert kept.shape == (2, 1, 1)
    for ord in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
        close(L.norm(t[0], ord), np.asarray(np.linalg.norm(a[0], ord)))
    close(taeda.norm(t, "nuc"), np.asarray(np.linalg.norm(a, "nuc")))
    assert L.cond(taeda.ones(2, 2), 1) == taeda.inf
    assert L.matrix_norm(taeda.zeros(0, 3), 2) == 0 and L.norm(taeda.zeros(3, 0), 1) == 0


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1, 30])
def test_matrix_exponential(scale):
    linalg = pytest.importorskip("scipy.linalg")
    for dtype in (taeda.float64, taeda.complex128):
        a = matrix(3, 5, 5, dtype=dtype) * scale * taeda.tensor([1.0, 0.1, 0.01]).view(3, 1, 1)
        expected = np.stack([linalg.expm(x) for x in a.numpy()])
        error = np.abs(taeda.matrix_exp(a).numpy() - expected).max(axis=(1, 2))
        assert (error <= 1e-11 * np.abs(expected).max(axis=(1, 2))).all()
    nilpotent = taeda.tensor([[0.0, 1e6], [0.0, 0.0]])
    assert taeda.equal(L.matrix_exp(nilpotent), taeda.tensor([[1.0, 1e6], [0.0, 1.0]]))


def test_powers_chains_and_tensors():
    a = matrix(2, 3, 3)
    for n in (0, 1, 2, 3, 7, -1, -3):
        close(L.matrix_power(a, n), np.linalg.matrix_power(a.numpy(), n))
    chain = [matrix(3, 50), matrix(50, 2, seed=1), matrix(2, 40, seed=2), matrix(40, 4, seed=3)]
    expected = np.linalg.multi_dot([m.numpy() for m in chain])
    close(L.multi_dot(chain), expected)
    close(taeda.chain_matmul(*chain), expected)
    close(L.multi_dot([chain[0][0], *chain[1:-1], chain[-1][:, 0]]), np.asarray(expected[0, 0]))
    t = matrix(2, 3, 6)
    close(L.tensorinv(t), np.linalg.tensorinv(t.numpy()))
    close(L.tensorsolve(t, t[..., 0]), np.linalg.tensorsolve(t.numpy(), t[..., 0].numpy()))
    close(L.vander(a[0, 0], N=5), np.vander(a[0, 0].numpy(), 5, increasing=True))
    close(L.cross(a, a + 1), np.cross(a.numpy(), a.numpy() + 1))
    close(taeda.cross(t.mT, t.mT + 1), np.cross(t.mT.numpy(), t.mT.numpy() + 1, axis=2))


def test_reflectors():
    for dtype in (taeda.float64, taeda.complex128):
        a = matrix(2, 5, 3, dtype=dtype)
        factor, tau = taeda.geqrf(a)
        q = L.qr(a, "complete").Q
        close(L.householder_product(factor, tau), q[..., :3], dtype)
        other = matrix(2, 5, 4, dtype=dtype, seed=1)
        close(taeda.ormqr(factor, tau, other), q @ other, dtype)
        close(taeda.ormqr(factor, tau, other, transpose=True), q.mH @ other, dtype)
        close(taeda.ormqr(factor, tau, other.mT, left=False), other.mT @ q, dtype)
        # The formula that carries gradients gives the same.
        grad = factor.clone().requires_grad_()
        close(L.householder_product(grad, tau), q[..., :3], dtype)
        close(taeda.ormqr(grad, tau, other.mT, left=False, transpose=True), other.mT @ q.mH, dtype)


def test_results_are_named():
    a = definite()
    assert L.eigh(a).eigenvalues.shape == (4,) and L.svd(a).Vh.shape == (4, 4)
    assert L.slogdet(a).logabsdet.dim() == 0 and L.lu(a).P.shape == (4, 4)
    assert L.cholesky_ex(a).info == 0 and L.inv_ex(a).inverse.shape == (4, 4)
    assert type(L.eigh(a)).__name__ == "linalg_eigh"
    assert len(a.lu()) == 2 and taeda.lu(a, get_infos=True).LU.shape == (4, 4)
    u, s, v = taeda.svd(a, compute_uv=False)
    assert not u.any() and not v.any() and s.shape == (4,)


def test_out():
    a = definite()
    out = taeda.empty(0, dtype=taeda.float64)
    assert L.inv(a, out=out) is out
    close(a @ out, taeda.eye(4, dtype=taeda.float64))
    w, v = taeda.empty(4, dtype=taeda.float64), taeda.empty(4, 4, dtype=taeda.float64)
    assert L.eigh(a, out=(w, v)).eigenvalues is w
    close(a @ v, v * w)
    with pytest.raises(RuntimeError, match="can't be cast"):
        L.cholesky(a, out=taeda.empty(4, 4, dtype=taeda.int64))


def test_meta_tensors():
    a, b = taeda.empty(2, 5, 3, device="meta"), taeda.empty(2, 3, 3, device="meta")
    assert L.svd(a).U.shape == (2, 5, 5) and L.qr(a).R.shape == (2, 3, 3)
    assert L.eig(b).eigenvectors.dtype == taeda.complex64 and L.inv(b).shape == (2, 3, 3)
    assert L.solve(b, b[..., 0]).shape == (2, 3) and L.lstsq(a, a).solution.shape == (2, 3, 3)
    assert L.det(b).shape == (2,) and L.matrix_exp(b).device.type == "meta"
    assert L.cholesky(b).shape == (2, 3, 3) and L.pinv(a).shape == (2, 3, 5)


# ---- what cannot be done ------------------------------------------------------------------------


def test_errors_name_the_matrix():
    singular = taeda.stack([taeda.eye(2), taeda.ones(2, 2)])
    for function in (L.inv, L.cholesky, L.lu_factor, lambda a: L.solve(a, a), taeda.inverse):
        with pytest.raises(L.LinAlgError, match="Batch element 1"):
            function(singular)
        with pytest.raises(RuntimeError) as caught:
            function(singular[1])
        assert "Batch" not in str(caught.value)
    assert issubclass(L.LinAlgError, RuntimeError) and L.LinAlgError.__module__ == "taeda.linalg"
    for function in (L.inv_ex, L.cholesky_ex, L.lu_factor_ex, lambda a: L.solve_ex(a, a)):
        assert function(singular).info.tolist() == [0, 2]
    with pytest.raises(L.LinAlgError, match="full rank"):
        L.lstsq(taeda.diag(taeda.tensor([1.0, 0.0])), singular[0], driver="gels")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("everywhere", [False, True])
def test_what_is_not_finite_neither_crashes_nor_hangs(bad, dtype, everywhere):
    a = definite(2, n=5, dtype=dtype)
    if everywhere:
        a[1] = bad
    else:
        a[1, 2, 1] = a[1, 1, 2] = bad
    for function in (L.eig, L.eigh, L.eigvals, L.eigvalsh, L.svd, L.svdvals, L.pinv, L.matrix_rank):
        with pytest.raises(L.LinAlgError, match="Batch element 1.*non-finite"):
            function(a)
    good = definite(2, n=5, dtype=dtype)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        with pytest.raises(L.LinAlgError, match="non-finite"):
            L.lstsq(a, good, driver=driver)
        assert L.lstsq(good, a, driver=driver).solution.shape == (2, 5, 5)
    for function in (L.cholesky_ex, L.inv_ex, L.lu_factor_ex, L.ldl_factor_ex, L.qr, L.lu, L.det):
        function(a)
    for function in (L.slogdet, taeda.geqrf, L.matrix_exp, L.matrix_norm):
        function(a)
    L.solve_ex(a, good)
    L.solve_triangular(a, good, upper=True)
    taeda.cholesky_solve(good, a)


def test_bad_arguments():
    a = matrix(2, 3, 3)
    for function in (
        L.inv,
        L.cholesky,
        L.eigh,
        L.eig,
        L.det,
        L.slogdet,
        L.matrix_exp,
        L.ldl_factor,
    ):
        with pytest.raises(RuntimeError, match="square"):
            function(a[..., :2])
    for function in (L.inv, L.svd, L.qr, L.cholesky, L.eigh, L.pinv, L.lu_factor):
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            function(a[0, 0])
        with pytest.raises(RuntimeError, match="floating point or complex"):
            function(a.long())
        with pytest.raises(RuntimeError, match="Low precision"):
            function(a.half())
    with pytest.raises(RuntimeError, match="Incompatible shapes"):
        L.solve(a, matrix(2, 4))
    with pytest.raises(RuntimeError, match="same dtype"):
        L.solve(a, a.float())
    with pytest.raises(RuntimeError, match="do not broadcast"):
        L.solve(a, matrix(5, 3, 1))
    with pytest.raises(RuntimeError, match="UPLO"):
        L.eigh(a, UPLO="X")
    with pytest.raises(RuntimeError, match="mode"):
        L.qr(a, mode="full")
    with pytest.raises(RuntimeError, match="driver"):
        L.lstsq(a, a, driver="gesvd")
    with pytest.raises(RuntimeError, match="not supported"):
        L.matrix_norm(a, 3)
    with pytest.raises(RuntimeError, match="at least 2 tensors"):
        L.multi_dot([a[0]])
    with pytest.raises(RuntimeError, match="pivot"):
        L.lu_factor(a, pivot=False)


def test_pivots_of_another_matrix_are_refused():
    """LAPACK would follow them out of the matrix."""
    a = matrix(3, 3)
    lu, pivots = L.lu_factor(a)
    for wrong in (pivots + 100, pivots - 100, pivots[:2], pivots.long()):
        with pytest.raises(RuntimeError, match="pivots"):
            L.lu_solve(lu, wrong, a)
        with pytest.raises(RuntimeError, match="pivots"):
            taeda.lu_unpack(lu, wrong)
        with pytest.raises(RuntimeError, match="pivots"):
            L.ldl_solve(lu, wrong, a)


def test_private_operations_check_what_they_are_given():
    """They are within reach, and what they pass to LAPACK would be read out of bounds."""
    ops, a = taeda._C.ops, matrix(3, 3)
    lu, pivots = L.lu_factor(a)
    calls = [
        lambda: ops._linalg_lu_solve(lu, pivots, matrix(4, 2), False),
        lambda: ops._linalg_lu_solve(lu[:, :2], pivots, a, False),
        lambda: ops._linalg_lu_solve(lu, pivots + 7, a, False),
        lambda: ops._linalg_solve_ex(a, matrix(4, 2), True, False),
        lambda: ops._linalg_solve_ex(a[0], a, True, False),
        lambda: ops._linalg_row_order(pivots, 2),
        lambda: ops._linalg_row_order(pivots[0], 3),
        lambda: ops._linalg_row_order(pivots + 7, 3),
        lambda: ops._linalg_householder(a, matrix(4)),
        lambda: ops._linalg_ormqr(a, matrix(3), matrix(5, 2), True, False),
        lambda: ops._linalg_lstsq(a, matrix(4, 2), None, "gelsd"),
        lambda: ops._linalg_lstsq(a, a, None, "zz"),
        lambda: ops._linalg_svd(a[0], True, True, False),
        lambda: ops._linalg_eigh(a[:2], "L", True),
        lambda: ops._linalg_eig(a[:2], True),
        lambda: ops._linalg_pinv(a[0], None, None, False),
        lambda: ops._linalg_det(a[:2]),
        lambda: ops._linalg_slogdet(a.long()),
    ]
    for call in calls:
        with pytest.raises(RuntimeError):
            call()


def test_the_number_of_threads_changes_no_bit():
    a, small = matrix(40, 30, 30, dtype=taeda.float32), matrix(3000, 5, 5, dtype=taeda.float32)
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            taeda.set_num_threads(threads)
            results.append([])
            for x in (a, small):
                results[-1] += [L.inv(x), *L.svd(x), *L.qr(x), L.det(x), *L.eigh(x)]
    finally:
        taeda.set_num_threads(before)
    for one, many in zip(*results, strict=True):
        assert taeda.equal(one, many)


def test_other_threads_run_meanwhile():
    """Python's lock is given up for matrices of some size."""
    a, done = matrix(200, 200), threading.Event()
    ticks = 0

    def work() -> None:
        for _ in range(5):
            L.svd(a)
        done.set()

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10)  # the other thread is not asked to give way
    try:
        thread.start()
        while not done.wait(0.001):
            ticks += 1
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert ticks > 0


# ---- low rank -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
@pytest.mark.parametrize(("m", "n"), [(30, 12), (12, 30), (2, 2)])
def test_low_rank(m, n, dtype):
    taeda.manual_seed(0)
    a = matrix(2, m, 2, dtype=dtype) @ matrix(2, 2, n, dtype=dtype, seed=1)
    u, s, v = taeda.svd_lowrank(a)
    assert s.shape == (2, min(6, m, n))
    close(u * s.unsqueeze(-2).to(dtype) @ v.mH, a, dtype)
    close(s[..., :2], L.svdvals(a)[..., :2])
    u, s, v = taeda.pca_lowrank(a, q=2)
    centred = a - a.mean(-2, keepdim=True)
    close(u * s.unsqueeze(-2).to(dtype) @ v.mH, centred, dtype)
    shifted = taeda.svd_lowrank(a, q=2, M=a.mean(-2, keepdim=True))[1]
    close(shifted, s)
    for bad in ({"q": -1}, {"q": 40}, {"niter": -1}):
        with pytest.raises(ValueError):
            taeda.pca_lowrank(a, **bad)
