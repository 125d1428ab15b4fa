"""Carries values between PyTorch and taeda without changing sizes, strides or dtypes."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

import taeda

DTYPES = {
    getattr(torch, name): getattr(taeda, name)
    for name in [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
    ]
}
BACK = {ours: theirs for theirs, ours in DTYPES.items()}
MEMORY_FORMATS = {
    torch.contiguous_format: taeda.contiguous_format,
    torch.preserve_format: taeda.preserve_format,
    torch.channels_last: taeda.channels_last,
}


class Untranslatable(Exception):
    """A sample holds something that taeda has no counterpart for (sparse, quantized, ...)."""


def tensor_to_taeda(t: torch.Tensor, memory: dict | None = None) -> taeda.Tensor:
    """A taeda tensor with the same values, sizes, strides, dtype and requires_grad.

    Its memory is its own, or shared with the tensors of the same storage that `memory` holds.
    """
    if t.layout is not torch.strided or t.dtype not in DTYPES or t.device.type != "cpu":
        raise Untranslatable(f"{t.layout} {t.dtype} {t.device}")
    source = t.detach().resolve_conj().resolve_neg()
    if source.numel() == 0:
        ours = taeda.empty_strided(source.size(), source.stride(), dtype=DTYPES[t.dtype])
    else:
        # Copy the whole storage, so that expanded, overlapping and partial layouts stay so.
        flat = torch.empty(0, dtype=source.dtype).set_(source.untyped_storage()).clone()
        place = (tuple(source.shape), source.stride(), source.storage_offset())
        whole = taeda.from_dlpack(flat)
        if memory is not None:
            whole = memory.setdefault((source.untyped_storage().data_ptr(), t.dtype), whole)
        ours = whole.as_strided(*place).detach()
    return ours.requires_grad_() if t.requires_grad else ours


def to_taeda(value: Any, memory: dict | None = None) -> Any:
    """The same in taeda. With an (empty) dict `memory`, tensors share memory where they do in PyTorch."""
    if isinstance(value, torch.Tensor):
        if memory is None:
            return tensor_to_taeda(value)
        if id(value) not in memory:
            memory[id(value)] = tensor_to_taeda(value, memory)
        return memory[id(value)]
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise Untranslatable(str(value))
        return DTYPES[value]
    if isinstance(value, torch.device):
        return taeda.device(str(value))
    if isinstance(value, torch.memory_format):
        if value not in MEMORY_FORMATS:
            raise Untranslatable(str(value))
        return MEMORY_FORMATS[value]
    if type(value).__name__ == "LinearCrossEntropyOptions":  # which older releases lack
        return taeda.nn.LinearCrossEntropyOptions(**to_taeda(dataclasses.asdict(value)))
    if isinstance(value, torch.layout):
        raise Untranslatable(str(value))
    if isinstance(value, torch.Size):
        return taeda.Size(value)
    if isinstance(value, (list, tuple)):
        items = [to_taeda(v, memory) for v in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {k: to_taeda(v, memory) for k, v in value.items()}
    return value


def to_torch(value: Any) -> Any:
    if isinstance(value, taeda.Tensor):
        value = value.detach()
        if value.numel() == 0:
            return torch.empty(tuple(value.shape), dtype=BACK[value.dtype])
        return torch.from_dlpack(value)
    if isinstance(value, taeda.dtype):
        return BACK[value]
    if isinstance(value, (list, tuple)):
        return [to_torch(v) for v in value]
    return value
