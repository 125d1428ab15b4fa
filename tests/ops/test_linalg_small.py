"""Batches of small matrices, which are factored as many at once as a register has lanes."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402
from taeda import linalg as L  # noqa: E402


def awkward(kind: str, *sizes: int) -> np.ndarray:
    """Matrices for which a method that is less than careful gives way."""
    x = np.random.default_rng(0).standard_normal(sizes)
    if kind == "rank one":
        x = x[..., :1] * x[..., :1, :]
    elif kind == "zeros below":
        x[..., x.shape[-2] // 2 :, :] = 0
    elif kind == "equal":
        x[:] = 3
    elif kind == "uneven columns":
        x *= 10.0 ** np.arange(-6, sizes[-1] - 6)
    else:
        x *= {"plain": 1, "large": 1e25, "small": 1e-25, "tiny": 1e-40}[kind]
    return x


SMALL = ["plain", "rank one", "zeros below", "equal", "uneven columns", "large", "small", "tiny"]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("kind", SMALL)
def test_orthogonal_factors(kind, dtype):
    unit = taeda.finfo(dtype).eps * 40
    least = 1e-43 if dtype == taeda.float32 else 0  # of what is not normal

    def orthogonal(q):
        return (abs(q.swapaxes(1, 2) @ q - np.eye(q.shape[2])) <= unit).all()

    for m, n in [(1, 1), (3, 3), (4, 2), (2, 5), (8, 8), (8, 1), (9, 3), (16, 16), (17, 2)]:
        for batch in (1, 5, 33):
            a = taeda.tensor(awkward(kind, batch, m, n), dtype=dtype)
            exact = a.double().numpy()
            near = unit * np.linalg.norm(exact, axis=(1, 2), keepdims=True) + least
            want = np.linalg.svd(exact, compute_uv=False)
            assert (abs(L.svdvals(a).double().numpy() - want) <= near[..., 0]).all()
            for full, any_signs in [(False, False), (True, False), (False, True), (True, True)]:
                found = taeda._C.ops._linalg_svd(a, full, True, any_signs)
                u, s, vh = (t.double().numpy() for t in found)
                k = s.shape[-1]
                assert (abs(u[..., :k] * s[:, None] @ vh[:, :k] - exact) <= near).all()
                assert orthogonal(u) and orthogonal(vh.swapaxes(1, 2))
                assert (np.diff(s) <= 0).all()
            for mode in ("reduced", "complete"):
                q, r = (t.double().numpy() for t in L.qr(a, mode))
                lengths = np.linalg.norm(exact, axis=1, keepdims=True)
                assert (abs(q @ r - exact) <= unit * lengths + least).all()
                assert orthogonal(q) and (np.tril(r, -1) == 0).all()
            if m == n:
                h = a + a.mT
                exact = h.double().numpy()
                for triangle, part in (("L", h.tril()), ("U", h.triu())):
                    other = (h - part) * 1000  # is not looked at
                    w, v = (t.double().numpy() for t in L.eigh(part + other, UPLO=triangle))
                    assert (abs(v * w[:, None] @ v.swapaxes(1, 2) - exact) <= near).all()
                    assert orthogonal(v) and (np.diff(w) >= 0).all()
                    alone = L.eigvalsh(part + other, UPLO=triangle).double().numpy()
                    assert (abs(alone - w) <= near[..., 0]).all()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("kind", SMALL)
def test_lu(kind, dtype):
    unit = taeda.finfo(dtype).eps * 40
    for m, n in [(1, 1), (3, 3), (4, 2), (2, 5), (8, 8), (13, 16), (16, 16), (17, 2)]:
        for batch in (1, 5, 33):
            if kind == "tiny" and (batch == 1 or m > 16):
                continue  # LAPACK's own, which multiplies by a reciprocal that is infinite
            a = taeda.tensor(awkward(kind, batch, m, n), dtype=dtype)
            exact = a.double().numpy()
            p, lower, upper = (t.double().numpy() for t in L.lu(a))
            # Rounding is relative to what is multiplied; below the normal range it is not.
            near = unit * abs(lower) @ abs(upper) + (1e-43 if dtype == taeda.float32 else 0)
            assert (abs(lower @ upper - p.swapaxes(1, 2) @ exact) <= near).all()
            assert (abs(lower) <= 1).all() and (p.sum(1) == 1).all() and (p.sum(2) == 1).all()
            lu, pivots, info = L.lu_factor_ex(a)
            for i in range(batch):
                alone = L.lu_factor_ex(a[i])
                assert alone.pivots.tolist() == pivots[i].tolist() or kind != "plain"
                zeros = (np.diagonal(upper[i]) == 0).nonzero()[0]
                assert info[i] == (zeros[0] + 1 if len(zeros) else 0)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_solutions(dtype):
    eps = taeda.finfo(dtype).eps
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 8, 15, 16, 17):
        for batch, cols in [(1, 1), (2, 1), (33, 1), (33, 3), (5, n), (19, n + 3)]:
            # Rows that only pivoting puts into order.
            exact = (rng.standard_normal((batch, n, n)) + 3 * n * np.eye(n))[:, rng.permutation(n)]
            a = taeda.tensor(exact, dtype=dtype)
            b = taeda.tensor(rng.standard_normal((batch, n, cols)), dtype=dtype)
            exact, right = a.double().numpy(), b.double().numpy()
            near = {"rtol": 0, "atol": 100 * eps}
            factors = L.lu_factor(a)
            want = np.linalg.solve(exact, right)
            np.testing.assert_allclose(L.solve(a, b).double().numpy(), want, **near)
            np.testing.assert_allclose(L.lu_solve(*factors, b).double().numpy(), want, **near)
            np.testing.assert_allclose(L.solve(a[:1], b).double().numpy()[0], want[0], **near)
            want = np.linalg.solve(exact.swapaxes(1, 2), right)
            turned = L.lu_solve(*factors, b, adjoint=True)
            np.testing.assert_allclose(turned.double().numpy(), want, **near)
            turned = L.solve(a, b.mT, left=False).mT
            np.testing.assert_allclose(turned.double().numpy(), want, **near)
            np.testing.assert_allclose(L.inv(a).double().numpy(), np.linalg.inv(exact), **near)
            np.testing.assert_allclose(L.det(a).double().numpy() / np.linalg.det(exact), 1, 1e-4)


def test_what_is_not_finite_stays_in_its_matrix():
    good = taeda.randn(9, 4, 4) + 4 * taeda.eye(4)
    bad = good.clone()
    bad[3, 1, 2], bad[5] = float("nan"), float("inf")
    rest = taeda.tensor([i for i in range(9) if i not in (3, 5)])
    for function in (lambda a: L.inv_ex(a).inverse, lambda a: L.lu_factor_ex(a).LU, L.det):
        assert taeda.equal(function(bad)[rest], function(good)[rest])
    for i in range(2):
        taeda.testing.assert_close(L.qr(bad)[i][rest], L.qr(good)[i][rest])
    assert not L.det(bad)[3].isfinite()


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_singular_vectors_have_pytorchs_signs(n):
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(n).standard_normal((50, n, n))
    mine, theirs = L.svd(taeda.from_numpy(a)), torch.linalg.svd(torch.from_numpy(a))
    for got, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_eigenvectors_have_one_sign_alone_and_in_a_batch(dtype):
    for n in (2, 3, 5, 8, 13, 16):
        a = np.random.default_rng(n).standard_normal((20, n, n))
        a = taeda.tensor(a + a.swapaxes(1, 2), dtype=dtype)
        v = L.eigh(a).eigenvectors
        for i in range(20):
            alone = L.eigh(a[i]).eigenvectors
            assert ((v[i] * alone).sum(0) > 0.9).all()
