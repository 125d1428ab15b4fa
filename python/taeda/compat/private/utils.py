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


def _get_available_device_type() -> str | None:
    """The type of the accelerator, or None where there is none."""
    return "cuda" if taeda.cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a type of device, such as ``torch.cuda``."""
    module = getattr(taeda, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def _flatten_dense_tensors(tensors: Any) -> Any:
    """The elements of tensors of one dtype, one after the other, as a tensor of one dimension."""
    return taeda.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Views of what ``_flatten_dense_tensors`` gave, with the shapes of ``tensors``."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))
