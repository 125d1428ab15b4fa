"""Batches in pinned memory, from which a GPU can copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch with its tensors in pinned memory; what is no container of tensors stays as it is.

    Args:
        data: a tensor, or a mapping, sequence or named tuple of such; anything with a method
            ``pin_memory`` is asked for itself.
        device: the kind of device that copies from it. Default: what there is.

    Raises:
        RuntimeError: there is no GPU, so that memory cannot be pinned.
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory() if device is None else data.pin_memory(device)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(part, device) for key, part in data.items()}
        return pinned if type(data) is dict else type(data)(pinned)  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(part, device) for part in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pin_memory(part, device) for part in data)
    return data
