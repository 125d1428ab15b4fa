"""Singular values of matrices of many shapes and kinds."""

from __future__ import annotations

import platform

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402
from taeda import linalg as L  # noqa: E402
from tests.ops.matrices import matrix  # noqa: E402

REAL = [taeda.float32, taeda.float64]
SIZES = [
    (3, 3),
    (9, 5),
    (5, 14),
    (21, 20),
    (60, 8),
    (48, 48),
    (49, 50),
    (64, 63),
    (129, 131),
    (130, 70),
    (60, 111),
    (300, 129),
    (260, 260),
    (140, 200),
    (97, 400),
]
KINDS = ["random", "zero", "unit", "ones", "of low rank", "graded", "huge", "tiny", "one column"]


def given(kind: str, m: int, n: int, dtype):
    a = matrix(m, n, dtype=dtype)
    if kind == "zero":
        return taeda.zeros(m, n, dtype=dtype)
    if kind == "unit":
        return taeda.eye(m, n, dtype=dtype)
    if kind == "ones":
        return taeda.ones(m, n, dtype=dtype)
    if kind == "of low rank":
        return a[:, :3] @ a[:3]
    if kind == "graded":
        return a * taeda.logspace(0, -20, n, dtype=dtype)
    if kind == "huge":
        return a * taeda.finfo(dtype).max ** 0.9
    if kind == "tiny":
        return a * taeda.finfo(dtype).tiny ** 0.9
    if kind == "one column":
        a[:, 1:] = 0
    return a


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_factors(size, dtype, kind):
    m, n = size
    a = given(kind, m, n, dtype)
    scale = float(a.abs().max()) or 1.0
    exact = a.numpy().astype(np.float64) / scale
    values = np.linalg.svd(exact, compute_uv=False)
    close = 40 * max(m, n) ** 0.5 * taeda.finfo(dtype).eps
    for full in (False, True):
        u, s, vh = (x.numpy().astype(np.float64) for x in L.svd(a, full_matrices=full))
        k = min(m, n)
        assert u.shape == (m, m if full else k) and vh.shape == (n if full else k, n)
        assert np.abs(u.T @ u - np.eye(u.shape[1])).max() < close
        assert np.abs(vh @ vh.T - np.eye(vh.shape[0])).max() < close
        s = s / scale
        assert (s >= 0).all() and (np.diff(s) <= 0).all()
        size_ = max(values[0], 1.0)
        assert np.abs(s - values).max() < close * size_
        assert np.abs((u[:, :k] * s) @ vh[:k] - exact).max() < close * size_
    alone = L.svdvals(a).numpy().astype(np.float64) / scale
    assert np.abs(alone - values).max() < close * size_


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="PyTorch has another LAPACK elsewhere"
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_signs_are_those_of_pytorch(size):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    a = matrix(*size, dtype=taeda.float64)
    u, _, vh = (x.numpy() for x in L.svd(a, full_matrices=False))
    x = torch.from_numpy(a.numpy())
    left, _, right = (t.numpy() for t in torch.linalg.svd(x, full_matrices=False))
    # Libraries differ in one sign or two of a hundred, which rounding decides.
    k = min(size)
    assert ((u * left).sum(0) > 0).sum() >= 0.95 * k
    assert (((vh * right).sum(1) > 0) == ((u * left).sum(0) > 0)).all()


def test_layouts_and_batches():
    a = matrix(3, 70, 52)
    for x in (a, a.mT.contiguous().mT, a.flip(1), a.transpose(0, 1).contiguous().transpose(0, 1)):
        u, s, vh = L.svd(x, full_matrices=False)
        for i in range(3):
            alone = L.svd(x[i], full_matrices=False)
            assert taeda.equal(u[i], alone.U) and taeda.equal(s[i], alone.S)
            assert taeda.equal(vh[i], alone.Vh)


def test_what_is_not_finite_is_an_error():
    for bad in (float("nan"), float("inf")):
        a = matrix(60, 50)
        a[59, 49] = bad
        for f in (L.svd, L.svdvals):
            with pytest.raises(taeda.linalg.LinAlgError):
                f(a)


@pytest.mark.parametrize("size", [(600, 500), (150, 400)], ids=str)
def test_threads_do_not_change_the_bits(size):
    a = matrix(*size)
    before = taeda.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.append([*L.svd(a, full_matrices=False), L.svdvals(a)])
        for other in results[1:]:
            assert all(taeda.equal(x, y) for x, y in zip(results[0], other, strict=True))
    finally:
        taeda.set_num_threads(before)
