"""Nested tensors with padding, as dense ones, and back."""

from __future__ import annotations

from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.nested._pointwise import from_padded
from taeda.nested._ragged import Ragged
from taeda.nested._tensor import NestedTensor, make, pack

_ops = _C.ops


def to_padded(x: NestedTensor, padding: Any, width: int | None = None) -> Tensor:
    """Each sequence with padding behind it: (batch, ..., width, ...).

    Args:
        x: the tensor.
        padding: the number.
        width: the size of the ragged dimension, by default the longest sequence's; of longer
            sequences the end is left out.
    """
    x = pack(x)
    ragged, d = x._ragged_, x._dim_
    if ragged.is_regular and width in (None, ragged.longest):
        return x._values_.unflatten(d - 1, (len(ragged), ragged.longest)).movedim(d - 1, 0)
    values = x._values_.movedim(d - 1, 0)
    device = values.device
    size = ragged.longest if width is None else width
    cells = ragged.cells(size, device)
    if size < ragged.longest:
        kept = (ragged.positions(device) < size).nonzero().squeeze(1)
        values, cells = values.index_select(0, kept), cells.index_select(0, kept)
    shape = (len(ragged) * size, *values.shape[1:])
    filled = _ops.full(shape, padding, dtype=values.dtype, device=device)
    rows = filled.index_copy(0, cells, values)
    return rows.unflatten(0, (len(ragged), size)).movedim(1, d)


def from_dense(dense: Tensor, ragged: Ragged, dim: int, strided: bool) -> NestedTensor:
    """Of a padded tensor the elements of the sequences; ``dim`` is the ragged dimension."""
    return make(from_padded(dense, ragged, dim), ragged, dim, strided)
