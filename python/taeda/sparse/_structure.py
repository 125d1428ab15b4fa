"""Layouts of sparse tensors, and their indices: orders, groups, checks. No values here."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda import _C
from taeda._C import Tensor

_ops = _C.ops


class Form(NamedTuple):
    """What a compressed layout means."""

    name: str  # as messages of PyTorch's spell it
    starts: str
    places: str
    by_rows: bool
    blocks: bool


_ROWS, _COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
FORMS: dict[Any, Form] = {
    _C.sparse_csr: Form("SparseCsr", *_ROWS, True, False),
    _C.sparse_csc: Form("SparseCsc", *_COLUMNS, False, False),
    _C.sparse_bsr: Form("SparseBsr", *_ROWS, True, True),
    _C.sparse_bsc: Form("SparseBsc", *_COLUMNS, False, True),
}
TRANSPOSED = {
    _C.sparse_csr: _C.sparse_csc,
    _C.sparse_csc: _C.sparse_csr,
    _C.sparse_bsr: _C.sparse_bsc,
    _C.sparse_bsc: _C.sparse_bsr,
}


def name_of(layout: Any) -> str:
    """Return a layout's name in messages."""
    if layout in FORMS:
        return FORMS[layout].name
    return {_C.sparse_coo: "Sparse", _C.strided: "Strided"}.get(layout, str(layout))


def check_coo(indices: Tensor, values: Tensor, size: tuple[int, ...]) -> None:
    """Raise RuntimeError unless these make a tensor of layout sparse_coo."""
    who = "sparse_coo_tensor()"
    if indices.dim() != 2:
        raise RuntimeError(
            f"{who}: indices must have sparse_dim x nnz elements in 2 dimensions, but got shape "
            f"{list(indices.shape)}"
        )
    if values.dim() < 1:
        raise RuntimeError(f"{who}: values must have 1 or more dimensions, but got none")
    sparse_dim, nnz = indices.shape
    dense_dim = values.dim() - 1
    if nnz != values.size(0):
        raise RuntimeError(
            f"{who}: indices and values must have same nnz, but got nnz from indices: {nnz}, nnz "
            f"from values: {values.size(0)}"
        )
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"{who}: the size must have sparse_dim + dense_dim = {sparse_dim} + {dense_dim} "
            f"numbers, but got {list(size)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"{who}: the size must not be negative, got {list(size)}")
    if tuple(values.shape[1:]) != size[sparse_dim:]:
        raise RuntimeError(
            f"{who}: values has incorrect size, expected {[nnz, *size[sparse_dim:]]}, got "
            f"{list(values.shape)}"
        )
    if nnz == 0:
        return
    least, most = _ops.aminmax(indices, dim=1) if sparse_dim else ((), ())
    for d in range(sparse_dim):
        if least[d] < 0:
            raise RuntimeError(f"{who}: found negative index {int(least[d])} for dim {d}")
        if most[d] >= size[d]:
            raise RuntimeError(
                f"{who}: size is inconsistent with indices: for dim {d}, size is {size[d]} but "
                f"found index {int(most[d])}"
            )


def infer_size(indices: Tensor, values: Tensor) -> tuple[int, ...]:
    """Return the smallest size that holds all indices."""
    if indices.dim() != 2 or values.dim() < 1 or (indices.size(1) == 0 and indices.size(0)):
        raise RuntimeError(
            "sparse_coo_tensor(): without a size, indices must be a matrix with elements, got "
            f"shape {list(indices.shape)}"
        )
    for d in range(indices.size(0)):
        if (least := int(indices[d].min())) < 0:
            raise RuntimeError(f"sparse_coo_tensor(): found negative index {least} for dim {d}")
    return (*(int(indices[d].max()) + 1 for d in range(indices.size(0))), *values.shape[1:])


def order_of(indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the permutation that sorts the columns of indices (stable)."""
    order: Any = None
    for d in reversed(range(indices.size(0))):
        keys = indices[d] if order is None else indices[d][order]
        # Counting wins unless the dimension is much longer than there are elements.
        if size[d] <= 4 * keys.numel() + 1024:
            step = _ops._group_rows(keys, size[d]).order
        else:
            step = _ops.argsort(keys, stable=True)
        order = step if order is None else order[step]
    return _ops.arange(indices.size(1), device=indices.device) if order is None else order


def is_first(indices: Tensor) -> Tensor:
    """Whether each column of ordered indices differs from the one before it."""
    first = _ops.ones(indices.size(1), dtype=taeda.bool, device=indices.device)
    if indices.size(1):
        first[1:] = (indices[:, 1:] != indices[:, :-1]).any(0)
    return first


def gather_rows(starts: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of the elements of the ``wanted`` rows, and the row of each.

    Args:
        starts: where each row begins, and at the end how many elements there are.
        wanted: the rows' numbers, in any order and repeated as they like.
    """
    counts = starts[wanted + 1] - starts[wanted]
    owner = _ops.repeat_interleave(_ops.arange(wanted.numel(), device=wanted.device), counts)
    before = _ops.cumsum(counts, 0) - counts
    own = _ops.arange(owner.numel(), device=owner.device) - before[owner]
    return starts[wanted][owner] + own, owner


def dim_in(dim: int, ndim: int) -> int:
    """Return a dimension counted from the start; IndexError where there is none."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            "Dimension out of range (expected to be in range of "
            f"[{-ndim}, {ndim - 1}], but got {dim})"
        )
    return dim % ndim
