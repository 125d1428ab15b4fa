"""Indexing of nested tensors."""

from __future__ import annotations

from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nested._shape import select, take
from taeda.nested._tensor import FUNCTIONS, NestedTensor

_WHOLE = slice(None)


def get(x: NestedTensor, index: Any) -> Any:
    """Return ``x[index]``: of the batch, or of dense dimensions."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, NestedTensor) for i in items):
        raise NotImplementedError("nested tensors are not indexed by nested ones; see masked_fill")
    if not items:
        return x
    first = items[0]
    if _is_number(first):
        part = select(x, 0, int(first))
        return part[tuple(items[1:])] if items[1:] else part
    if first is None:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    if first is not Ellipsis:
        if not _is_whole(first):
            x = take(x, _sequences(first, len(x)))
        items[0] = _WHOLE
    return _within(x, items)


def _is_number(i: Any) -> bool:
    if isinstance(i, Tensor):
        return i.dim() == 0 and i.dtype != taeda.bool
    return hasattr(i, "__index__") and not isinstance(i, bool)


def _is_whole(i: Any) -> bool:
    return isinstance(i, slice) and i == _WHOLE


def _sequences(index: Any, count: int) -> list[int]:
    """The numbers of the sequences that a slice, a list or a tensor names."""
    if isinstance(index, slice):
        return list(range(count))[index]
    if not isinstance(index, (Tensor, list)) and not hasattr(index, "__array__"):
        raise IndexError(f"nested tensors are not indexed by {type(index).__name__}")
    found = taeda.as_tensor(index)
    if found.dim() != 1:
        raise NotImplementedError("sequences of a nested tensor are chosen by a 1-D index")
    if found.dtype == taeda.bool:
        if found.size(0) != count:
            raise IndexError(f"a mask of {found.size(0)} does not fit {count} sequences")
        found = found.nonzero().squeeze(1)
    numbers = found.tolist()
    if any(not -count <= i < count for i in numbers):
        raise IndexError(f"index {numbers} is out of bounds for {count} sequences")
    return [i % count for i in numbers]


def _within(x: NestedTensor, items: list[Any]) -> Any:
    """Index the dimensions behind the batch; what comes first is whole, or an Ellipsis."""
    given = [i for i in items if i is not None and i is not Ellipsis]
    if len(given) > x.dim():
        raise IndexError(f"too many indices for tensor of dimension {x.dim()}")
    if Ellipsis in [i for i in items if i is None or i is Ellipsis]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [_WHOLE] * (x.dim() - len(given))
    dim = 0
    for item in items:
        if item is None:
            x = FUNCTIONS["unsqueeze"](x, dim)
            dim += 1
        elif _is_whole(item):
            dim += 1
        elif _is_number(item):
            x = select(x, dim, int(item))
        elif isinstance(item, slice):
            step = 1 if item.step is None else item.step
            x = FUNCTIONS["slice"](x, dim, item.start, item.stop, step)
            dim += 1
        else:
            raise NotImplementedError(
                "within its sequences a nested tensor is indexed by numbers and slices; see "
                "index_select()"
            )
    return x
