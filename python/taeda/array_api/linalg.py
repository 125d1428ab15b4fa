"""The standard's extension for linear algebra. Operands may be stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda._C import Tensor, dtype
from taeda.array_api._dtypes import common

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Axis = int | tuple[int, ...] | None

det = taeda.linalg.det
eigh = taeda.linalg.eigh
eigvalsh = taeda.linalg.eigvalsh
inv = taeda.linalg.inv
matrix_power = taeda.linalg.matrix_power
slogdet = taeda.linalg.slogdet
svdvals = taeda.linalg.svdvals


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor of a positive definite matrix."""
    return taeda.linalg.cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """Return an orthogonal ``Q`` and an upper triangular ``R``; ``mode="complete"``: square Q."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', got {mode!r}")
    return taeda.linalg.qr(x, mode)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """Return the singular value decomposition ``U, S, Vh``."""
    return taeda.linalg.svd(x, full_matrices)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return ``x`` with ``x1 @ x == x2``; only an ``x2`` of one dimension is a vector."""
    a, b = common(x1, x2)
    if b.dim() == 1:
        return taeda.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    missing = max(a.dim() - b.dim(), 0)
    return taeda.linalg.solve(a, b.reshape((1,) * missing + tuple(b.shape)))


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product; vectors are rows on the left and columns on the right."""
    return taeda.matmul(*common(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view with the last two dimensions exchanged."""
    if x.dim() < 2:
        raise ValueError(f"matrix_transpose(): x must have 2 or more dimensions, got {x.dim()}")
    return x.mT


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return all products of an element of one vector and one of the other."""
    return taeda.outer(*common(x1, x2))


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sum products over the last ``axes`` dimensions of ``x1`` and first of ``x2``, or as named."""
    a, b = common(x1, x2)
    return taeda.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum ``conj(x1) * x2`` over a dimension that both have; the others broadcast.

    Args:
        x1, x2: the vectors.
        axis: the dimension, counted from the end where the numbers of dimensions differ.

    Raises:
        ValueError: its size is not the same in both.
    """
    a, b = common(x1, x2)
    if a.size(axis) != b.size(axis):
        raise ValueError(f"vecdot(): dimension {axis} has sizes {a.size(axis)} and {b.size(axis)}")
    return taeda.sum(a.conj() * b, axis, dtype=a.dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements; other dimensions broadcast."""
    a, b = common(x1, x2)
    return taeda.linalg.cross(a, b, dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return a diagonal of the matrices in the last two dimensions."""
    return taeda.linalg.diagonal(x, offset=offset)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Return the sum of a diagonal of each matrix in the last two dimensions."""
    return taeda.sum(taeda.linalg.diagonal(x, offset=offset), -1, dtype=dtype)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the number of singular values above ``rtol`` times the largest."""
    return taeda.linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the pseudoinverse; singular values below ``rtol`` times the largest count as zero."""
    return taeda.linalg.pinv(x, rtol=rtol)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """Return the norm ("fro", "nuc", 1, 2, inf, or their negatives) of each matrix."""
    return taeda.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def vector_norm(
    x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """Return the norm over some dimensions; by default of all elements as one vector."""
    if axis == ():
        return taeda.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    return taeda.linalg.vector_norm(x, ord, axis, keepdims)
