"""Matrices of diagonals, and the switch for checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda._C import Tensor

__all__ = ["check_sparse_tensor_invariants", "sampled_addmm", "spdiags"]


class check_sparse_tensor_invariants:
    """Whether plain indices must be sorted and differ, row by row (or column by column).

    What `check_invariants` of the functions that make compressed tensors is by default. All else is
    always checked. A call of `enable` or `disable`, the context of a block, or a decorator.
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """What was last said."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Say that the order of indices is to be checked."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Say that the order of indices need not be checked."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before.append(check_sparse_tensor_invariants._enabled)
        check_sparse_tensor_invariants._enabled = self._wanted

    def __exit__(self, *exc_info: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return decorated


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix of diagonals.

    Args:
        diagonals: one in each row, or a single one: element j goes into column j.
        offsets: the place of each: 0 is the main diagonal, those above it are positive.
        shape: the rows and columns of the matrix.
        layout: ``taeda.sparse_coo``, the default, ``taeda.sparse_csr`` or ``taeda.sparse_csc``.

    Raises:
        RuntimeError: there is not one offset for each diagonal, an offset comes twice, or `layout`
            is another one.

    >>> rows = taeda.arange(6.0).view(2, 3)
    >>> taeda.sparse.spdiags(rows, taeda.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[0., 4., 0.],
            [0., 1., 5.],
            [0., 0., 2.]])
    """
    if layout not in (None, taeda.sparse_coo, taeda.sparse_csr, taeda.sparse_csc):
        raise RuntimeError(
            f"spdiags(): layout must be sparse_coo, sparse_csr or sparse_csc, got {layout}"
        )
    diagonals, offsets = taeda.atleast_2d(diagonals), taeda.atleast_1d(offsets)
    places = offsets.tolist()
    if diagonals.dim() != 2 or len(shape) != 2 or len(places) != diagonals.size(0):
        raise RuntimeError(
            "spdiags(): expected a matrix of diagonals, one offset for each, and two sizes, got "
            f"shapes {list(diagonals.shape)} and {list(offsets.shape)}, and {tuple(shape)}"
        )
    if len(set(places)) != len(places):
        raise RuntimeError(f"spdiags(): Offset tensor contains duplicate values: {places}")
    rows, columns, values = [], [], []
    for diagonal, offset in zip(diagonals, places, strict=True):
        first = max(offset, 0)
        last = max(min(shape[1], shape[0] + offset, diagonal.numel()), first)
        column = taeda.arange(first, last)
        rows.append(column - offset)
        columns.append(column)
        values.append(diagonal[first:last])
    indices = taeda.stack((taeda.cat(rows), taeda.cat(columns)))
    result = taeda.sparse_coo_tensor(indices, taeda.cat(values), tuple(shape))
    return result.to_sparse(layout=layout)


def sampled_addmm(
    input: Any,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: Any = None,
) -> Any:
    """``beta * input + alpha * (mat1 @ mat2)`` at the elements that ``input`` has.

    Only those elements of the product are computed.

    Args:
        input: a ``sparse_csr`` matrix of shape (m, n).
        mat1: a dense matrix of shape (m, k).
        mat2: a dense matrix of shape (k, n).
        beta: a factor of ``input``.
        alpha: a factor of the product.
        out: a ``sparse_csr`` matrix with the elements of ``input``, to write to.

    Raises:
        RuntimeError: a matrix has another layout, shape or dtype.

    >>> a = taeda.eye(2).to_sparse_csr()
    >>> taeda.sparse.sampled_addmm(a, taeda.ones(2, 3), taeda.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not isinstance(input, Tensor) or input.layout is not taeda.sparse_csr:
        raise RuntimeError("sampled_addmm(): input must be a sparse_csr matrix")
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.layout is not taeda.strided or mat.dim() != 2:
            raise RuntimeError(f"sampled_addmm(): {name} must be a dense matrix")
        if mat.dtype != input.dtype:
            raise RuntimeError(
                f"sampled_addmm(): {name} is of {mat.dtype}, and input of {input.dtype}"
            )
    if (mat1.size(0), mat2.size(1)) != tuple(input.shape) or mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"sampled_addmm(): shapes {list(mat1.shape)} and {list(mat2.shape)} do not give "
            f"{list(input.shape)}"
        )
    crow, columns = input.crow_indices(), input.col_indices()
    rows = taeda.arange(input.size(0)).repeat_interleave(crow.diff())
    product = (mat1[rows] * mat2.t()[columns]).sum(1)
    values = beta * input.values() + alpha * product
    if out is None:
        return taeda.sparse_csr_tensor(crow, columns, values, input.shape)
    if out.layout is not taeda.sparse_csr or not taeda.equal(out.col_indices(), columns):
        raise RuntimeError("sampled_addmm(): out must have the elements of input")
    out.values().copy_(values)
    return out
