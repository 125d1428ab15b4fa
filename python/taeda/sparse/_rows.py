"""Conversion between the two representations of row indices (COO and CSR)."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = ["_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"]


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each row begins, from the row of every element.

    Args:
        input: the rows, in ascending order, of shape (nnz,) and dtype int32 or int64.
        size: the number of rows.
        out_int32: the result is int32, not int64.

    Returns:
        Numbers of elements in front of each row, and of all, of shape (size + 1,).

    Raises:
        RuntimeError: the rows are no vector, or one is out of range.

    >>> taeda._convert_indices_from_coo_to_csr(taeda.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    who = "_convert_indices_from_coo_to_csr()"
    _check_indices(who, "input", input)
    if input.numel() and not 0 <= int(input.min()) <= int(input.max()) < size:
        raise RuntimeError(f"{who}: rows must be in [0, {size}), got {input}")
    counts = taeda.bincount(input, minlength=size)
    starts = taeda.cat([counts.new_zeros(1), counts.cumsum(0)])
    return starts.to(taeda.int32) if out_int32 else starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and column of every element, from where each row begins.

    Args:
        crow_indices: where each row begins, and the number of elements, of shape (rows + 1,).
        col_indices: the column of each element, of shape (nnz,).
        out_int32: the result is int32, not int64.
        transpose: columns come first, as in the transposed matrix.

    Returns:
        The indices, of shape (2, nnz).

    Raises:
        RuntimeError: an argument is no vector, or the rows do not hold the elements.

    >>> crow, col = taeda.tensor([0, 2, 2, 3]), taeda.tensor([4, 5, 6])
    >>> taeda._convert_indices_from_csr_to_coo(crow, col)
    tensor([[0, 0, 2],
            [4, 5, 6]])
    """
    who = "_convert_indices_from_csr_to_coo()"
    _check_indices(who, "crow_indices", crow_indices)
    _check_indices(who, "col_indices", col_indices)
    counts = crow_indices.long().diff()
    if bool((counts < 0).any()) or int(counts.sum()) != col_indices.numel():
        raise RuntimeError(
            f"{who}: crow_indices must ascend from 0 to {col_indices.numel()}, got {crow_indices}"
        )
    rows = taeda.repeat_interleave(counts)
    both = [col_indices.long(), rows] if transpose else [rows, col_indices.long()]
    return taeda.stack(both).to(taeda.int32 if out_int32 else taeda.int64)


def _check_indices(who: str, name: str, indices: Tensor) -> None:
    if indices.dtype not in (taeda.int32, taeda.int64):
        raise NotImplementedError(f"{who}: {name} must be int32 or int64, got {indices.dtype}")
    if indices.dim() != 1:
        raise RuntimeError(f"{who}: {name} must have 1 dimension, got {indices.dim()}")
