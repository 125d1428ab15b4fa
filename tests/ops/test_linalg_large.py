"""Matrices so large that their factors are computed in blocks."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402
from taeda import linalg as L  # noqa: E402
from tests.ops.matrices import DTYPES, close, matrix  # noqa: E402


def eps(dtype) -> float:
    return taeda.finfo(dtype).eps


def transposed(x, how: str):
    return {"N": x, "T": x.mT, "C": x.mH}[how]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (17, 17),
        (20, 50),
        (50, 20),
        (65, 65),
        (200, 200),
        (300, 130),
        (130, 300),
        (40, 200),
        (750, 750),
    ],
)
def test_lu(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    p, lower, upper = L.lu(a)
    assert float(lower.abs().max()) < 1.5  # complex pivots are chosen by |re| + |im|
    close(p @ lower @ upper, a, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lu_solve(dtype):
    a, b = matrix(150, 150, dtype=dtype) + 20 * taeda.eye(150), matrix(150, 40, dtype=dtype, seed=1)
    lu, pivots = L.lu_factor(a)
    for adjoint in (False, True):
        x = L.lu_solve(lu, pivots, b, adjoint=adjoint)
        close((a.mH if adjoint else a) @ x, b, dtype)
        x = L.lu_solve(lu, pivots, b.mT, left=False, adjoint=adjoint)
        close(x @ (a.mH if adjoint else a), b.mT, dtype)
    close(L.inv(a) @ a, taeda.eye(150, dtype=dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(300, 300), (130, 450), (450, 130), (65, 66), (430, 430)], ids=str
)
def test_lu_by_any_number_of_threads(shape, dtype):
    a, before = matrix(*shape, dtype=dtype), taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 2, 7):
            taeda.set_num_threads(threads)
            results.append([*L.lu_factor(a), L.lu(a).L])
    finally:
        taeda.set_num_threads(before)
    for others in results[1:]:
        for one, many in zip(results[0], others, strict=True):
            assert taeda.equal(one, many)


def test_lu_of_singular_matrices():
    for n in (40, 300, 800):
        a = taeda.eye(n)
        place = 20 if n == 40 else 170
        a[place, place] = a[n - n // 8, n - n // 8] = 0
        assert L.lu_factor_ex(a).info == place + 1
    with pytest.raises(L.LinAlgError, match="U\\[171,171\\] is zero"):
        L.lu_factor(a)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cholesky(dtype, upper):
    n = 330
    a = matrix(n, n, dtype=dtype)
    a = a @ a.mH / n + taeda.eye(n, dtype=dtype)
    factor = L.cholesky(a, upper=upper)
    assert taeda.equal(factor, factor.triu() if upper else factor.tril())
    close(factor.mH @ factor if upper else factor @ factor.mH, a, dtype)
    b = matrix(n, 40, dtype=dtype, seed=1)
    close(a @ taeda.cholesky_solve(b, factor, upper=upper), b, dtype)
    for wrong in (-1.0, float("nan")):
        a[290, 290] = wrong
        assert L.cholesky_ex(a, upper=upper).info == 291


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7, 16, 33, 64, 65, 130, 300])
def test_inverse_of_a_cholesky_factor(n, dtype, upper):
    a = matrix(2, n, n, dtype=dtype)
    a = a @ a.mH + n * taeda.eye(n, dtype=dtype)
    factor = L.cholesky(a, upper=upper)
    noise = taeda.randn(n, n, dtype=dtype)  # in the triangle that is not read
    noise = noise.tril(-1) if upper else noise.triu(1)
    x = taeda.cholesky_inverse(factor + noise, upper=upper)
    assert taeda.equal(x, x.mH.resolve_conj()) or dtype.is_complex
    wide = np.complex128 if dtype.is_complex else np.float64
    error = x.numpy() @ a.numpy().astype(wide) - np.eye(n)
    assert np.abs(error).max() < 50 * max(n, 10) ** 0.5 * eps(dtype)
    assert taeda.equal(taeda.cholesky_inverse(factor[1], upper=upper), x[1]) or n > 64


@pytest.mark.parametrize("how", "NTC")
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(how, upper, unit):
    n, dtype = 150, taeda.complex128
    t = (matrix(n, n, dtype=dtype) / n).triu() + taeda.eye(n, dtype=dtype)
    t = transposed(t if upper == (how == "N") else t.mT, how)
    b = matrix(n, 40, dtype=dtype, seed=1)
    full = t + taeda.diag_embed(1 - t.diagonal()) if unit else t
    options = {"upper": upper, "unitriangular": unit}
    close(full @ L.solve_triangular(t, b, **options), b)
    close(L.solve_triangular(t, b.mT, left=False, **options) @ full, b.mT)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (17, 17),
        (20, 33),
        (33, 18),
        (65, 63),
        (41, 100),
        (150, 150),
        (300, 170),
        (170, 300),
        (700, 600),
    ],
    ids=str,
)
def test_qr(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    for size in (1.0, taeda.finfo(dtype).max ** 0.7, taeda.finfo(dtype).tiny ** 0.7):
        scaled = a * size
        for mode in ("reduced", "complete"):
            q, r = (x.numpy() for x in L.qr(scaled, mode))
            assert np.abs(q.T @ q - np.eye(q.shape[1])).max() < 100 * eps(dtype)
            difference = q @ (r / size) - (scaled / size).numpy()
            assert np.abs(difference).max() < 10 * max(shape) ** 0.5 * eps(dtype)
            assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("shape", [(17, 5), (64, 64), (180, 150), (350, 33)], ids=str)
def test_products_with_q(shape, dtype):
    factor, tau = taeda.geqrf(matrix(*shape, dtype=dtype))
    c = matrix(shape[0], 150, dtype=dtype)
    q = L.qr(matrix(*shape, dtype=dtype), "complete").Q
    exact = c.numpy()
    for i in reversed(range(shape[1])):
        v = np.zeros((shape[0], 1))
        v[i], v[i + 1 :] = 1, factor.numpy()[i + 1 :, i : i + 1]
        exact = exact - float(tau[i]) * v @ (v.T @ exact)
    for result, right in (
        (taeda.ormqr(factor, tau, c), exact),
        (taeda.ormqr(factor, tau, c.mT, left=False, transpose=True), exact.T),
        (taeda.ormqr(factor, tau, c, transpose=True), (q.mT @ c).numpy()),
        (taeda.ormqr(factor, tau, c.mT, left=False), (c.mT @ q).numpy()),
        (L.householder_product(factor, tau), q[:, : shape[1]].numpy()),
    ):
        assert np.abs(result.numpy() - right).max() < 300 * eps(dtype)


def test_qr_of_what_is_not_finite_or_zero():
    for bad in (float("nan"), float("inf")):
        a = matrix(80, 80)
        a[3, 4] = bad
        q, r = L.qr(a)
        assert q[:, 4:].isnan().all() and r[:4, :4].isfinite().all()
    q, r = L.qr(taeda.zeros(100, 90))
    assert (q == taeda.eye(100, 90)).all() and (r == 0).all()


def symmetric(kind: str, n: int, dtype):
    a = matrix(n, n, dtype=dtype)
    if kind == "random":
        a = a + a.mH
    elif kind == "of low rank":
        a = a[:, :3] @ a[:, :3].mH
    elif kind == "with two eigenvalues":
        q = L.qr(a).Q
        a = q @ taeda.diag(taeda.where(taeda.arange(n) < n // 3, 1.0, -1.0)).to(dtype) @ q.mH
    elif kind == "diagonal":
        a = taeda.diag(taeda.arange(n) % 7).to(dtype)
    elif kind == "zero":
        a = taeda.zeros(n, n, dtype=dtype)
    elif kind == "of close pairs":  # Wilkinson's
        beside = taeda.diag(taeda.ones(n - 1), 1)
        a = (taeda.diag((taeda.arange(n) - n // 2).abs()) + beside + beside.mT).to(dtype)
    elif kind == "huge":
        a = (a + a.mH) * taeda.finfo(dtype).max ** 0.8
    elif kind == "tiny":
        a = (a + a.mH) * taeda.finfo(dtype).tiny ** 0.8
    return a


KINDS = ["random", "of low rank", "with two eigenvalues", "diagonal", "zero", "of close pairs"]


@pytest.mark.parametrize("kind", [*KINDS, "huge", "tiny"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [3, 8, 20, 64, 129, 200])
def test_eigh(n, dtype, kind):
    a = symmetric(kind, n, dtype)
    exact = a.numpy().astype(np.complex128)
    size = float(np.abs(exact).max()) or 1.0
    for triangle in "LU":
        w, v = (x.numpy() for x in L.eigh(a.tril() if triangle == "L" else a.triu(), triangle))
        assert (np.diff(w) >= 0).all()
        v = v.astype(np.complex128)
        assert np.abs(v.conj().T @ v - np.eye(n)).max() < 100 * eps(dtype)
        assert np.abs(exact / size @ v - v * (w / size)).max() < n * 10 * eps(dtype)
        values = L.eigvalsh(a, triangle).numpy()
        assert np.abs(values / size - w / size).max() < n * 10 * eps(dtype)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("n", [3, 7, 16, 33, 50, 97, 128, 143, 159, 160, 385, 417, 600])
def test_eigenvalues(n, dtype):
    a = matrix(n, n, dtype=dtype)
    a = a + a.mT
    exact = np.linalg.eigvalsh(a.numpy().astype(np.float64))
    size = np.abs(exact).max()
    for values in (L.eigh(a).eigenvalues, L.eigvalsh(a), L.eigvalsh(a, "U")):
        assert np.abs(values.numpy() - exact).max() < n * 4 * eps(dtype) * size


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [161, 200, 420])
def test_eigh_by_any_number_of_threads(n, dtype):
    a, before = matrix(2, n, n, dtype=dtype), taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 2, 7):
            taeda.set_num_threads(threads)
            results.append([*L.eigh(a[0]), L.eigvalsh(a[1]), *L.eigh(a)])
    finally:
        taeda.set_num_threads(before)
    for others in results[1:]:
        for one, many in zip(results[0], others, strict=True):
            assert taeda.equal(one, many)


def test_eigenvalues_beside_tiny_numbers():
    a = matrix(150, 150) * 1e-24  # whose squares are zero
    a = a + a.mT + taeda.diag((taeda.arange(150) % 5).float())
    w, v = (x.double().numpy() for x in L.eigh(a))
    assert np.abs(v.T @ v - np.eye(150)).max() < 100 * eps(taeda.float32)
    assert np.abs(w - np.repeat(np.arange(5), 30)).max() < 1e-5


def test_eigh_of_a_batch():
    a = matrix(3, 140, 140)
    a = a + a.mT
    w, v = L.eigh(a)
    for i in range(3):
        alone = L.eigh(a[i])
        assert taeda.equal(w[i], alone.eigenvalues) and taeda.equal(v[i], alone.eigenvectors)


KINDS_OF_ANY = {
    "random": lambda x: x,
    "symmetric": lambda x: x + x.T,
    "skew": lambda x: x - x.T,
    "orthogonal": lambda x: np.linalg.qr(x)[0],
    "of rank one": lambda x: x[:, :1] @ x[:1],
    "of ones": lambda x: x * 0 + 1,
    "nearly a Jordan block": lambda x: np.eye(len(x)) + np.eye(len(x), k=1) + 1e-5 * ring(len(x)),
    "a ring": lambda x: ring(len(x)),
    "of blocks": lambda x: np.kron(np.array([[0, 1], [-1, 0]]), x)[: len(x), : len(x)],
    "of powers": lambda x: np.vander(np.linspace(0, 1, len(x))),
    "huge": lambda x: x * 1e12,
    "tiny": lambda x: x * 1e-12,
    "uneven": lambda x: x * 1.3 ** (np.arange(len(x)) % 20),
    "triangular": np.triu,
    "zero": lambda x: 0 * x,
}


def ring(n: int) -> np.ndarray:
    return np.roll(np.eye(n), 1, 0)


@pytest.mark.parametrize("kind", KINDS_OF_ANY)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 7, 16, 33, 64, 130])
def test_eig(n, dtype, kind):
    a = taeda.tensor(KINDS_OF_ANY[kind](matrix(n, n).numpy()), dtype=dtype)
    exact = a.numpy().astype(np.complex128)
    size = max(np.linalg.norm(exact), 1e-300)
    w, v = (x.numpy().astype(np.complex128) for x in L.eig(a))
    near = 100 * eps(dtype)
    assert np.abs(exact / size @ v - v * (w / size)).max() < near
    assert np.abs(np.linalg.norm(v, axis=0) - 1).max() < near
    assert np.abs(w.sum() - np.trace(exact)) < near * size * n**0.5
    pairs = w.imag > 0
    assert (w[np.roll(pairs, 1)] == w[pairs].conj()).all()
    assert (v[:, np.roll(pairs, 1)] == v[:, pairs].conj()).all()
    values = L.eigvals(a).numpy()
    assert np.abs(values.sum() - w.sum()) < near * size * n**0.5
    if kind in ("symmetric", "orthogonal"):
        gaps = np.abs(values[:, None] - w)
        assert max(gaps.min(0).max(), gaps.min(1).max()) < near * size


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("n", [2, 34, 330])
def test_eig_of_the_largest_and_the_smallest_numbers(n, dtype):
    turns = np.kron(np.eye(n // 2), np.array([[0, 1], [-1, 0]]))
    for size in (taeda.finfo(dtype).max, taeda.finfo(dtype).tiny / 1024):
        w, v = L.eig(taeda.tensor(turns * size, dtype=dtype))
        lengths = np.abs(w.numpy().astype(np.complex128).imag / size)
        assert lengths.tolist() == pytest.approx([1] * n, rel=1e-6)
        assert np.allclose(np.linalg.norm(v.numpy(), axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("norm", [0, 1e-9, 0.014, 0.016, 0.25, 0.43, 0.9, 1.9, 2.1, 3.9, 5.3, 40])
def test_exponentials_of_every_degree(norm, dtype):
    a = matrix(12, 12, dtype=taeda.complex128 if dtype.is_complex else taeda.float64)
    a = a + a.mH
    a = (a * (norm / float(L.matrix_norm(a, 1)))).to(dtype)
    w, v = np.linalg.eigh(a.numpy().astype(np.complex128))
    exact = (v * np.exp(w)) @ v.conj().T
    error = 20 * max(1, norm) * eps(dtype) * np.abs(exact).max()
    assert np.abs(L.matrix_exp(a).numpy() - exact).max() < error
    batch = L.matrix_exp(taeda.stack([a, a * 0, a * 1e-3]))  # of one degree, the largest
    assert np.abs(batch[0].numpy() - exact).max() < error
    assert np.abs(batch[1].numpy() - np.eye(12)).max() < 4 * eps(dtype)
