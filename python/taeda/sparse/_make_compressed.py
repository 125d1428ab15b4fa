"""Compressed sparse tensors from starts, places and values, which are checked."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.sparse._make import checked_values, finish
from taeda.sparse._more import check_sparse_tensor_invariants
from taeda.sparse._structure import FORMS, name_of
from taeda.sparse._tensor import SparseTensor, compressed

_ops = _C.ops


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a sparse tensor of a compressed layout.

    Args:
        compressed_indices: where each row (``sparse_csr``), column (``sparse_csc``), or row or
            column of blocks (``sparse_bsr``, ``sparse_bsc``) begins, and nnz at the end:
            (batch, n + 1). int64 or int32.
        plain_indices: the column or row of each element or block: (batch, nnz).
        values: (batch, nnz, ...); of blocks (batch, nnz, rows, columns, ...).
        size: (batch, rows, columns, ...); by default the plain dimension ends with the last
            element.
        dtype: of the values; by default what they have.
        layout: one of the four.
        device: "cpu".
        requires_grad: make it a leaf whose gradient is recorded.
        check_invariants: also check that plain indices are sorted and differ, row by row; by
            default what ``sparse.check_sparse_tensor_invariants`` says. All others are always.

    Raises:
        RuntimeError: an index is out of bounds or out of order, or the shapes do not fit.

    >>> a = taeda.sparse_compressed_tensor([0, 1], [1], [5.0], (2, 1), layout=taeda.sparse_csc)
    >>> a.to_dense()
    tensor([[0.],
            [5.]])
    """
    if layout not in FORMS:
        given = "none" if layout is None else name_of(layout)
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {given}"
        )
    starts, places = _C.as_tensor(compressed_indices), _C.as_tensor(plain_indices)
    if places.numel() == 0 and not isinstance(plain_indices, Tensor):
        places = places.to(starts.dtype)
    v = checked_values(values, dtype, device)
    starts, places = starts.to(v.device), places.to(v.device)
    if size is None:
        sizes = infer_size(layout, starts, places, v)
    else:
        sizes = tuple(size)
    check_parts(layout, starts, places, v, sizes)
    if (
        check_sparse_tensor_invariants.is_enabled()
        if check_invariants is None
        else check_invariants
    ):
        check_order(layout, starts, places)
    return finish(compressed(layout, starts, places, v, sizes), requires_grad)


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a sparse matrix of compressed rows, of layout ``taeda.sparse_csr``.

    Args:
        crow_indices: where each row begins, and nnz at the end: (batch, rows + 1).
        col_indices: the column of each element: (batch, nnz).
        values: of the elements: (batch, nnz, ...).
        size: (batch, rows, columns, ...); by default the columns end with the last element's.
        dtype, device, requires_grad, check_invariants: as for ``sparse_compressed_tensor``.

    Raises:
        RuntimeError: an index is out of bounds or out of order, or the shapes do not fit.

    >>> taeda.sparse_csr_tensor([0, 1, 1], [1], [5.0]).to_dense()
    tensor([[0., 5.],
            [0., 0.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=_C.sparse_csr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a sparse matrix of compressed columns, of layout ``taeda.sparse_csc``.

    Args:
        ccol_indices: where each column begins, and nnz at the end: (batch, columns + 1).
        row_indices: the row of each element: (batch, nnz).
        values: of the elements: (batch, nnz, ...).
        size: (batch, rows, columns, ...); by default the rows end with the last element's.
        dtype, device, requires_grad, check_invariants: as for ``sparse_compressed_tensor``.

    Raises:
        RuntimeError: an index is out of bounds or out of order, or the shapes do not fit.

    >>> taeda.sparse_csc_tensor([0, 1, 1], [1], [5.0]).to_dense()
    tensor([[0., 0.],
            [5., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=_C.sparse_csc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a sparse matrix of blocks in compressed rows, of layout ``taeda.sparse_bsr``.

    Args:
        crow_indices: where each row of blocks begins, and nnz at the end: (batch, rows + 1).
        col_indices: the column of each block: (batch, nnz).
        values: of each block: (batch, nnz, rows, columns, ...).
        size: (batch, rows, columns, ...); by default the columns end with the last block's.
        dtype, device, requires_grad, check_invariants: as for ``sparse_compressed_tensor``.

    Raises:
        RuntimeError: an index is out of bounds or out of order, or the shapes do not fit.

    >>> taeda.sparse_bsr_tensor([0, 1], [1], taeda.ones(1, 1, 2)).to_dense()
    tensor([[0., 0., 1., 1.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=_C.sparse_bsr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a sparse matrix of blocks in compressed columns, of layout ``taeda.sparse_bsc``.

    Args:
        ccol_indices: where each column of blocks begins, and nnz at the end: (batch, columns + 1).
        row_indices: the row of each block: (batch, nnz).
        values: of each block: (batch, nnz, rows, columns, ...).
        size: (batch, rows, columns, ...); by default the rows end with the last block's.
        dtype, device, requires_grad, check_invariants: as for ``sparse_compressed_tensor``.

    Raises:
        RuntimeError: an index is out of bounds or out of order, or the shapes do not fit.

    >>> taeda.sparse_bsc_tensor([0, 1], [1], taeda.ones(1, 1, 2)).to_dense()
    tensor([[0., 0.],
            [1., 1.]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=_C.sparse_bsc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


# ---- checks ------------------------------------------------------------------------------------


def infer_size(layout: Any, starts: Tensor, places: Tensor, values: Tensor) -> tuple[int, ...]:
    """Return the smallest size that holds all places."""
    form, at = FORMS[layout], starts.dim()
    if at == 0 or values.dim() < at + 2 * form.blocks:
        raise RuntimeError(
            f"{_who(layout)}: without a size, {form.starts} and values must have dimensions for "
            f"the matrix, got shapes {list(starts.shape)} and {list(values.shape)}"
        )
    block = tuple(values.shape[at : at + 2]) if form.blocks else (1, 1)
    last = int(places.max()) + 1 if places.numel() else 0
    counts = (starts.size(-1) - 1, last) if form.by_rows else (last, starts.size(-1) - 1)
    matrix = tuple(n * b for n, b in zip(counts, block, strict=True))
    return (*starts.shape[:-1], *matrix, *values.shape[at + 2 * form.blocks :])


def _who(layout: Any) -> str:
    return f"{str(layout).rsplit('.', 1)[-1]}_tensor()"


def check_parts(
    layout: Any, starts: Tensor, places: Tensor, values: Tensor, size: tuple[int, ...]
) -> None:
    """Raise RuntimeError unless these make a tensor of a compressed layout."""
    form, who = FORMS[layout], _who(layout)
    for name, x in ((form.starts, starts), (form.places, places)):
        if x.dtype not in (taeda.int32, taeda.int64):
            raise RuntimeError(f"{who}: {name} must be int32 or int64, got {x.dtype}")
    if starts.dtype != places.dtype:
        raise RuntimeError(
            f"{who}: both indices must have one dtype, got {starts.dtype} and {places.dtype}"
        )
    batch, rest = starts.dim() - 1, values.dim() - starts.dim() - 2 * form.blocks
    if batch < 0 or places.dim() != starts.dim() or rest < 0 or len(size) != batch + 2 + rest:
        raise RuntimeError(
            f"{who}: {form.starts}, {form.places}, values and size must have dimensions of a "
            f"matrix and batch dimensions alike, got shapes {list(starts.shape)}, "
            f"{list(places.shape)}, {list(values.shape)} and the size {list(size)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"{who}: the size must not be negative, got {list(size)}")
    shapes = [tuple(x.shape[:batch]) for x in (starts, places, values)]
    if any(shape != size[:batch] for shape in shapes):
        raise RuntimeError(
            f"{who}: batch dimensions must be those of the size {list(size)}, got {shapes}"
        )
    block = tuple(values.shape[batch + 1 : batch + 3]) if form.blocks else (1, 1)
    matrix = size[batch : batch + 2]
    if 0 in block or matrix[0] % block[0] or matrix[1] % block[1]:
        raise RuntimeError(
            f"{who}: the size {list(matrix)} must be divisible by the blocks' {list(block)}"
        )
    if tuple(values.shape[values.dim() - rest :]) != size[batch + 2 :]:
        raise RuntimeError(
            f"{who}: values of shape {list(values.shape)} do not have the dense dimensions of the "
            f"size {list(size)}"
        )
    counts = [n // b for n, b in zip(matrix, block, strict=True)]
    count, width = counts if form.by_rows else counts[::-1]
    _check_indices(layout, starts, places, values.size(batch), count, width)


def _check_indices(
    layout: Any, starts: Tensor, places: Tensor, nnz: int, count: int, width: int
) -> None:
    form, who = FORMS[layout], _who(layout)
    if starts.size(-1) != count + 1:
        raise RuntimeError(
            f"{who}: {form.starts} must have {count} + 1 elements, got {starts.size(-1)}"
        )
    if places.size(-1) != nnz:
        raise RuntimeError(
            f"{who}: {form.places} and values must have same nnz, got {places.size(-1)} and {nnz}"
        )
    ends = (starts[..., 0] != 0) | (starts[..., -1] != nnz)
    if ends.any() or (starts[..., 1:] < starts[..., :-1]).any():
        raise RuntimeError(f"{who}: {form.starts} must rise from 0 to nnz, which is {nnz}")
    if places.numel() and (places.min() < 0 or places.max() >= width):
        raise RuntimeError(f"{who}: {form.places} must be from 0 on and below {width}")


def check_order(layout: Any, starts: Tensor, places: Tensor) -> None:
    """Raise RuntimeError unless the places of each row (or column) are sorted and differ."""
    nnz = places.size(-1)
    rising = _ops.ones(places.shape, dtype=taeda.bool, device=places.device)
    rising[..., 1:] = places[..., 1:] > places[..., :-1]
    lines = (*places.shape[:-1], nnz + 1)
    first = _ops.zeros(lines, dtype=taeda.bool, device=places.device)
    first.scatter_(-1, starts.long(), True)
    if not (rising | first[..., :nnz]).all():
        raise RuntimeError(
            f"{_who(layout)}: {FORMS[layout].places} must be sorted and distinct between two "
            f"neighbours of {FORMS[layout].starts}"
        )
