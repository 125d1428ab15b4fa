"""Matrices to test linear algebra with."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402

DTYPES = [taeda.float32, taeda.float64, taeda.complex64, taeda.complex128]
BATCHES = [(), (2,), (0,), (2, 1, 3)]
EXACT = {taeda.float32: 1e-3, taeda.complex64: 1e-3, taeda.float64: 1e-9, taeda.complex128: 1e-9}


def matrix(*shape: int, dtype=taeda.float64, seed: int = 0, grad: bool = False):
    g = taeda.Generator()
    g.manual_seed(seed)
    return taeda.randn(shape, dtype=dtype, generator=g).requires_grad_(grad)


def definite(*batch: int, n: int = 4, dtype=taeda.float64, seed: int = 0):
    a = matrix(*batch, n, n, dtype=dtype, seed=seed)
    return a @ a.mH + taeda.eye(n, dtype=dtype)


def close(actual, expected, dtype=taeda.float64) -> None:
    actual = actual.detach().resolve_conj().numpy() if isinstance(actual, taeda.Tensor) else actual
    expected = expected.detach().numpy() if isinstance(expected, taeda.Tensor) else expected
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=EXACT[dtype], atol=EXACT[dtype])


def strided(a):
    """The same values in layouts that LAPACK cannot read as they are."""
    yield a
    yield a.mT.contiguous().mT
    wide = taeda.zeros(*a.shape[:-1], a.shape[-1] * 2, dtype=a.dtype)
    wide[..., ::2] = a
    yield wide[..., ::2]
