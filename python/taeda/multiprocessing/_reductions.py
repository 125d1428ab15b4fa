"""How a tensor gets to another process: its memory is shared, its description is pickled."""

from __future__ import annotations

import os
from multiprocessing import reduction
from typing import Any

import taeda
from taeda import _C


def _rebuild_storage(file: Any, nbytes: int) -> Any:
    descriptor = file.detach()
    try:
        return taeda.UntypedStorage._from_shared_file(descriptor, nbytes)
    finally:
        os.close(descriptor)


def _reduce_storage(storage: Any) -> Any:
    if storage.device.type != "cpu":
        raise RuntimeError(f"a storage on {storage.device} cannot be shared with other processes")
    storage.share_memory_()
    return _rebuild_storage, (reduction.DupFd(storage._shared_file()), storage.nbytes())


def _rebuild_tensor(kind: Any, storage: Any, dtype: Any, place: Any, requires_grad: bool) -> Any:
    tensor = taeda.empty(0, dtype=dtype, device=storage.device).set_(storage, *place)
    if issubclass(kind, taeda.nn.Parameter):
        return kind(tensor, requires_grad)
    tensor = tensor if kind is taeda.Tensor else tensor.as_subclass(kind)
    return tensor.requires_grad_(requires_grad)


def _reduce_tensor(tensor: Any) -> Any:
    if tensor.is_meta or tensor.numel() == 0 or _C._is_placeholder(tensor):
        return tensor.__reduce_ex__(4)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a tensor with a history cannot be sent to another process, as gradients do not pass "
            "between processes; send tensor.detach()"
        )
    values = tensor.detach()
    place = (values.storage_offset(), tuple(values.shape), tuple(values.stride()))
    storage = values.untyped_storage()
    return _rebuild_tensor, (type(tensor), storage, tensor.dtype, place, tensor.requires_grad)


def register() -> None:
    """Let ``multiprocessing`` send tensors and storages so."""
    for kind in (taeda.Tensor, taeda.nn.Parameter):
        reduction.ForkingPickler.register(kind, _reduce_tensor)
    reduction.ForkingPickler.register(taeda.UntypedStorage, _reduce_storage)
