"""Decompositions of low rank by random projections."""

from __future__ import annotations

from typing import Any

from taeda import _C, linalg

ops = _C.ops

__all__ = ["pca_lowrank", "svd_lowrank"]


def _range_of(a: Any, q: int, niter: int) -> Any:
    """Return an orthonormal basis (*, m, q) of the range of ``a`` (*, m, n), by random projection.

    Halko, Martinsson and Tropp, "Finding structure with randomness", 2009, algorithm 4.4: each
    round of ``niter`` multiplies by ``a`` and its adjoint once more, which sharpens the decay of
    the singular values.
    """
    vectors = ops.randn((a.shape[-1], q), dtype=a.dtype, device=a.device)
    basis = linalg.qr(a @ vectors).Q
    for _ in range(niter):
        basis = linalg.qr(a.mH @ basis).Q
        basis = linalg.qr(a @ basis).Q
    return basis


def svd_lowrank(
    A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None
) -> tuple[Any, Any, Any]:
    """Return the largest singular values of matrices, approximately, with their vectors.

    Args:
        A: matrices of shape (*, m, n).
        q: how many to find (k = min(q, m, n) is the most there are); more than are needed make
            those more exact.
        niter: rounds of refinement; 2 or 3 are enough unless the singular values decay slowly.
        M: matrices of shape (*, m, n) or (*, 1, n) to subtract from ``A``.

    Returns:
        U (*, m, k), S (*, k) and V (*, n, k), so that ``A - M`` is nearly ``U @ diag(S) @ V.mH``.

    Raises:
        ValueError: ``q`` or ``niter`` is negative.

    >>> a = taeda.outer(taeda.arange(1.0, 4.0), taeda.ones(4))
    >>> U, S, V = taeda.svd_lowrank(a, q=1)
    >>> taeda.allclose(U * S @ V.mT, a, atol=1e-5)
    True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if q < 0 or niter < 0:
        raise ValueError(f"svd_lowrank(): q and niter must not be negative, got {q} and {niter}")
    if M is not None:
        A = A - M
    if A.shape[-2] < A.shape[-1]:  # the shorter side is the cheaper one to orthogonalise
        basis = _range_of(A.mH, q, niter)
        u, s, vh = linalg.svd(A @ basis, full_matrices=False)
        return u, s, basis @ vh.mH
    basis = _range_of(A, q, niter)
    u, s, vh = linalg.svd(basis.mH @ A, full_matrices=False)
    return basis @ u, s, vh.mH


def pca_lowrank(
    A: Any, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Any, Any, Any]:
    """Return the principal components of rows of data, approximately.

    Args:
        A: data of shape (*, m, n): m points in n dimensions.
        q: how many components to find; min(6, m, n) by default.
        center: subtract the mean of the points first.
        niter: rounds of refinement, as for :func:`svd_lowrank`.

    Returns:
        U (*, m, q), S (*, q) and V (*, n, q). The columns of V are the principal directions,
        ``S ** 2 / (m - 1)`` the variances along them, and ``A @ V`` the points' coordinates.

    Raises:
        ValueError: ``q`` or ``niter`` is out of range.

    >>> points = taeda.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> U, S, V = taeda.pca_lowrank(points, q=1)
    >>> round((V[1, 0] / V[0, 0]).item(), 3)
    2.0
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"pca_lowrank(): q must lie between 0 and min(m, n) = {min(m, n)}, got {q}"
        )
    if niter < 0:
        raise ValueError(f"pca_lowrank(): niter must not be negative, got {niter}")
    return svd_lowrank(A, q, niter=niter, M=A.mean(-2, keepdim=True) if center else None)
