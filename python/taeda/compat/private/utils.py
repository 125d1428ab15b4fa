"""Stands for ``torch._utils``: tensors laid end to end, sizes, what checkpoints are rebuilt by."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.serialization._rebuild import rebuild_parameter as _rebuild_parameter
from taeda.serialization._rebuild import rebuild_tensor_v2 as _rebuild_tensor_v2

__all__ = [
    "_element_size",
    "_flatten_dense_tensors",
    "_rebuild_parameter",
    "_rebuild_tensor_v2",
    "_unflatten_dense_tensors",
]


def _element_size(dtype: Any) -> int:
    """How many bytes an element takes."""
    size: int = dtype.itemsize
    return size


def _flatten_dense_tensors(tensors: Any) -> Any:
    """The elements of tensors of one dtype, one after the other, as a tensor of one dimension."""
    return taeda.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Views of what ``_flatten_dense_tensors`` gave, with the shapes of ``tensors``."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))
