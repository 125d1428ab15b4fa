"""Compressed layouts: CSR and CSC, and BSR and BSC, which are those of dense blocks.

One of a matrix's two dimensions is compressed: ``starts`` says where each of its rows (or columns)
begins. The other is plain: ``places`` holds the position of every element, or block, in it. Batches
of matrices have as many elements each, so they are read as one matrix, the compressed dimension of
which is longer. A layout chooses which dimension is compressed; nothing else depends on it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.sparse import _structure
from taeda.sparse._structure import FORMS, name_of
from taeda.sparse._tensor import SparseTensor, add_up, compressed

_ops = _C.ops


def block_of(x: SparseTensor) -> tuple[int, int] | None:
    """Return the sizes of a block, None where there are no blocks."""
    if x.layout not in FORMS or not FORMS[x.layout].blocks:
        return None
    at = x._starts.dim()
    return x._values_.size(at), x._values_.size(at + 1)


# ---- where the elements are ----------------------------------------------------------------------


def _pieces(x: SparseTensor) -> tuple[list[Tensor], Tensor]:
    """Return batch, row and column of each element (or block), and the values."""
    count = x._starts.size(-1) - 1
    starts, places = x._starts, x._places
    batch = tuple(starts.shape[:-1])
    if batch:
        nnz = x._nnz()
        before = _ops.arange(prod(batch), device=starts.device).unsqueeze(1) * nnz
        inner = (starts.reshape(-1, count + 1)[:, :-1].long() + before).reshape(-1)
        starts = _ops.cat([inner, inner.new_full((1,), prod(batch) * nnz)])
        places = places.reshape(-1)
    own = _ops._csr_rows(starts, places)
    matrix = _ops.div(own, max(count, 1), rounding_mode="floor") if batch else None
    if matrix is not None:
        own = own - matrix * count
    indices: list[Tensor] = []
    for n in reversed(batch):
        assert matrix is not None
        indices.insert(0, matrix % n)
        matrix = _ops.div(matrix, n, rounding_mode="floor")
    both = [own, places.long()] if FORMS[x.layout].by_rows else [places.long(), own]
    return indices + both, x._values_.flatten(0, len(batch))


def elements(x: SparseTensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the index of each element, dimension by dimension, and the values, in one order."""
    indices, values = _pieces(x)
    block = block_of(x)
    if block is None:
        return tuple(indices), values
    shape = (values.size(0), *block)
    down, across = (_ops.arange(n, device=values.device) for n in block)
    inner = (down.reshape(-1, 1), across)
    wide = [i.reshape(-1, 1, 1).expand(shape) for i in indices]
    for d in (0, 1):
        wide[d - 2] = wide[d - 2] * block[d] + inner[d]
    return tuple(i.reshape(-1) for i in wide), values.flatten(0, 2)


# ---- making them -------------------------------------------------------------------------------


def _into_blocks(
    indices: Tensor, values: Tensor, size: tuple[int, ...], block: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return the blocks that have elements, in order, from single elements."""
    batch, inner = indices[:-2], indices[-2:]
    widths = taeda.tensor(block, device=indices.device).unsqueeze(1)
    outer = _ops.div(inner, widths, rounding_mode="floor")
    keys = _ops.cat([batch, outer])
    counts = (*size[: len(batch)], *(size[d + len(batch)] // block[d] for d in (0, 1)))
    order = _structure.order_of(keys, counts)
    first = _structure.is_first(keys[:, order])
    number = _ops.empty_like(order)
    number[order] = first.cumsum(0) - 1
    within = inner - outer * widths
    at = (number * block[0] + within[0]) * block[1] + within[1]
    found = keys[:, order][:, first.nonzero().squeeze(1)]
    full = add_up(values, at, found.size(1) * block[0] * block[1])
    return found, full.reshape(found.size(1), *block, *values.shape[1:])


def from_pieces(
    indices: Tensor,
    values: Tensor,
    size: tuple[int, ...],
    layout: Any,
    block: tuple[int, int] | None = None,
    *,
    ordered: bool = False,
    dtype: Any = None,
) -> SparseTensor:
    """Make a compressed tensor of elements or blocks.

    Args:
        indices: of each, (batch dimensions + 2, n).
        values: (n, ...), of blocks (n, rows, columns, ...).
        size: of the tensor.
        layout: the layout to make.
        block: the sizes of the blocks that the values are.
        ordered: the indices are sorted, row by row.
        dtype: of the indices, int64 by default.
    """
    batch, form = indices.size(0) - 2, FORMS[layout]
    counts = [n // b for n, b in zip(size[batch:], block or (1, 1), strict=False)]
    major, minor = (0, 1) if form.by_rows else (1, 0)
    keys = indices[[*range(batch), batch + major, batch + minor]]
    if not (ordered and form.by_rows):
        order = _structure.order_of(keys, (*size[:batch], counts[major], counts[minor]))
        keys, values = keys[:, order], values[order]
    count, matrices = counts[major], prod(size[:batch])
    own = keys[batch]
    if batch:
        matrix = _ops.zeros_like(own)
        for d in range(batch):
            matrix = matrix * size[d] + keys[d]
        own = own + matrix * count
    starts, places = _ops._group_rows(own, count * matrices).starts, keys[-1]
    if batch:
        starts, each = _per_matrix(starts, count, matrices, places.numel())
        starts = starts.reshape(*size[:batch], count + 1)
        places = places.reshape(*size[:batch], each)
        values = values.reshape(*size[:batch], each, *values.shape[1:])
    if dtype is not None:
        starts, places = starts.to(dtype), places.to(dtype)
    return compressed(layout, starts, places.contiguous(), values, size)


def _per_matrix(starts: Tensor, count: int, matrices: int, total: int) -> tuple[Tensor, int]:
    """Cut the starts of all matrices in one into those of each; and the elements of each."""
    each = total // matrices if matrices else 0
    before = _ops.arange(matrices, device=starts.device) * each
    if count == 0:
        return _ops.zeros((matrices, 1), dtype=taeda.int64, device=starts.device), each
    ends = starts[count::count]
    if not _ops.equal(ends, before + each):
        raise RuntimeError(
            "Expect the same number of specified elements per batch; the matrices have "
            f"{(ends - _ops.cat([starts[:1], ends[:-1]])).tolist()}"
        )
    rows = _ops.cat([starts[:-1].reshape(matrices, count), ends.unsqueeze(1)], 1)
    return rows - before.unsqueeze(1), each


# ---- conversions -------------------------------------------------------------------------------


def check_request(
    who: str, x: Tensor, layout: Any, block: Any, dense_dim: int
) -> tuple[int, int] | None:
    """Return the sizes of blocks; raise unless ``x`` can have the layout."""
    name = name_of(layout)
    if x.dim() - dense_dim < 2:
        raise IndexError(
            f"{who}: layout {name} needs 2 dimensions besides {dense_dim} dense ones, got shape "
            f"{list(x.shape)}"
        )
    if FORMS[layout].blocks != (block is not None):
        given = "with" if block is not None else "without"
        raise RuntimeError(
            f"{who}: conversion from {name_of(x.layout)} to {name} {given} blocksize argument "
            "given is not supported"
        )
    if block is None:
        return None
    sizes = (block, block) if isinstance(block, int) else tuple(block)
    if len(sizes) != 2 or any(n <= 0 for n in sizes):
        raise RuntimeError(f"{who}: blocksize needs to be 2 positive numbers, but got {block}")
    matrix = tuple(x.shape[x.dim() - dense_dim - 2 : x.dim() - dense_dim])
    if matrix[0] % sizes[0] or matrix[1] % sizes[1]:
        raise RuntimeError(
            f"{who}: tensor sparse size {matrix} must be divisible by given blocksize {sizes}"
        )
    return sizes


def from_dense(x: Tensor, layout: Any, block: tuple[int, int] | None, dense_dim: int) -> Any:
    """Return the elements, or blocks, of a dense tensor that are not zero."""
    last = x.dim() - dense_dim
    pieces = x
    if block is not None:
        (rows, columns), behind = x.shape[last - 2 : last], x.shape[last:]
        cut = (rows // block[0], block[0], columns // block[1], block[1])
        pieces = x.reshape(*x.shape[: last - 2], *cut, *behind).transpose(last - 1, last)
    found = pieces.to_sparse(last)
    size = tuple(x.shape)
    return from_pieces(found._indices_, found._values_, size, layout, block, ordered=True)


def convert(x: SparseTensor, layout: Any, block: tuple[int, int] | None) -> SparseTensor:
    """Return a sparse tensor in a compressed layout: itself where it has that already."""
    size, kind = tuple(x.shape), None
    if x.layout is _C.sparse_coo:
        x = x.coalesce()
        indices, values, ordered = x._indices_, x._values_, True
    else:
        own = block_of(x)
        if (x.layout, own) == (layout, block):
            return x
        parts, values = _pieces(x) if own == block else elements(x)
        indices, ordered, kind = _ops.stack(tuple(parts)), False, x._starts.dtype
        if own == block:
            return from_pieces(indices, values, size, layout, block, dtype=kind)
    if block is not None:
        indices, values = _into_blocks(indices, values, size, block)
        ordered = True
    return from_pieces(indices, values, size, layout, block, ordered=ordered, dtype=kind)


def as_before(x: SparseTensor, result: SparseTensor) -> SparseTensor:
    """Return what was computed of ``x`` in layout sparse_coo in the layout that ``x`` has."""
    if x.is_sparse:
        return result
    return convert(result, x._layout, block_of(x))


def compressed_rows(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the rows of a matrix begin, and the columns and values row by row.

    What is found of the indices is kept with the tensor until they are changed.
    """
    if x.is_sparse_csr:
        return x._starts, x._places, x._values_
    sources = (x._indices_,) if x.is_sparse else (x._starts, x._places)
    versions = [source._version for source in sources]
    values = x._values_
    if x._rows is None or x._rows[0] != versions:
        (row, column), values = x._elements()
        starts, order = _ops._group_rows(row, x.size(0))
        if x._coalesced:
            x._rows = versions, starts, column.contiguous(), None
        else:
            x._rows = versions, starts, column[order], order
    _, starts, column, order = x._rows
    return starts, column, values if order is None else values.reshape(-1)[order]
