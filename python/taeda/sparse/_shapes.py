"""Shape ops for sparse tensors: reshaping, slicing and joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.sparse import _structure
from taeda.sparse._structure import TRANSPOSED
from taeda.sparse._tensor import SparseTensor, answers, compressed, coo

_ops = _C.ops


@answers("transpose", "swapaxes", "swapdims")
def _transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    dims = list(range(input.dim()))
    a, b = (_structure.dim_in(d, input.dim()) for d in (dim0, dim1))
    dims[a], dims[b] = b, a
    return _permute(input, dims)


@answers("t")
def _t(input: SparseTensor) -> SparseTensor:
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return _permute(input, range(input.dim())[::-1])


@answers("permute")
def _permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [_structure.dim_in(d, input.dim()) for d in given]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute(): {list(given)} is not an order of {input.dim()} dimensions")
    if order == list(range(input.dim())):
        return input
    size = tuple(input.shape[d] for d in order)
    if not input.is_sparse:
        return _permute_compressed(input, order, size)
    count = input.sparse_dim()
    if any((d < count) != (i < count) for i, d in enumerate(order)):
        raise RuntimeError("transposing sparse with dense dimensions is not supported")
    values = input._values_.permute(0, *(d - count + 1 for d in order[count:]))
    return coo(input._indices_[order[:count]], values, size)


def _permute_compressed(
    input: SparseTensor, order: list[int], size: tuple[int, ...]
) -> SparseTensor:
    """Move batch dimensions, and exchange rows and columns, which is another layout alone."""
    batch = input._batch_dim()
    matrix = order[batch : batch + 2]
    if sorted(matrix) != [batch, batch + 1] or input.dense_dim():
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (batch or sparse) of a "
            f"compressed tensor without dense dimensions, got the order {order}"
        )
    moved = [*order[:batch], batch]
    starts, places = (x.permute(moved) for x in (input._starts, input._places))
    rest = [*range(batch + 1, input._values_.dim())]
    if matrix[0] < matrix[1]:
        layout = input.layout
    else:
        layout, rest = TRANSPOSED[input.layout], rest[::-1]
    return compressed(layout, starts, places, input._values_.permute([*moved, *rest]), size)


@answers("index_select")
def _index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    d = _structure.dim_in(dim, input.dim())
    x = input.to_sparse_coo()
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < x.size(d):
        raise IndexError(f"index_select(): index out of range for a size of {x.size(d)}")
    size = (*x.shape[:d], index.numel(), *x.shape[d + 1 :])
    if d >= x.sparse_dim():
        values = x._values_.index_select(d - x.sparse_dim() + 1, index)
        return coo(x._indices_, values, size, x._coalesced)
    starts, order = _ops._group_rows(x._indices_[d], x.size(d))
    positions, owner = _structure.gather_rows(starts, index.long())
    positions = order[positions]
    indices = x._indices_[:, positions]
    indices[d] = owner
    return coo(indices, x._values_[positions], size)


@answers("select")
def _select(input: SparseTensor, dim: int, index: int) -> Any:
    d = _structure.dim_in(dim, input.dim())
    n = input.size(d)
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {d}"
        )
    size = (*input.shape[:d], *input.shape[d + 1 :])
    if d < input._batch_dim():
        starts, places, values = (
            part.select(d, index) for part in (input._starts, input._places, input._values_)
        )
        return compressed(input.layout, starts, places, values, size)
    x = input.to_sparse_coo()
    if d >= x.sparse_dim():
        values = x._values_.select(d - x.sparse_dim() + 1, index)
        return coo(x._indices_, values, size, x._coalesced)
    positions = (x._indices_[d] == index % n).nonzero().squeeze(1)
    kept = [i for i in range(x.sparse_dim()) if i != d]
    values = x._values_[positions]
    if not kept:
        return values.sum(0).to(x.dtype)
    return coo(x._indices_[kept][:, positions], values, size, x._coalesced)


@answers("cat", "concat", "concatenate")
def _cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    for i, x in enumerate(tensors):
        if not isinstance(x, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}."
            )
    parts = [x.to_sparse_coo() for x in tensors]
    first = parts[0]
    d, count = _structure.dim_in(dim, first.dim()), first.sparse_dim()
    for x in parts:
        fits = all(a == b or i == d for i, (a, b) in enumerate(zip(x.shape, first.shape)))  # noqa: B905
        if x.dim() != first.dim() or x.sparse_dim() != count or not fits:
            raise RuntimeError(
                f"cat(): shapes {list(first.shape)} and {list(x.shape)} do not fit along {d}"
            )
    if d >= count:
        raise NotImplementedError("cat(): only dimensions with indices can be joined along")
    indices, before = [], 0
    for x in parts:
        moved = x._indices_.clone()
        moved[d] += before
        indices.append(moved)
        before += x.size(d)
    size = (*first.shape[:d], before, *first.shape[d + 1 :])
    return coo(_ops.cat(indices, 1), _ops.cat([x._values_ for x in parts]), size)
