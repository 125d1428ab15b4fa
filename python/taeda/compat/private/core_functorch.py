"""Stands for ``torch._C._functorch``: what vmap hides dimensions with, and asks of tensors."""

from __future__ import annotations

from taeda import Tensor
from taeda._batching.tensor import BatchedTensor
from taeda._batching.tensor import is_batched as is_batchedtensor
from taeda.func._vmap import _add_batch_dim, _remove_batch_dim

__all__ = [
    "_add_batch_dim",
    "_remove_batch_dim",
    "get_unwrapped",
    "is_batchedtensor",
    "maybe_get_bdim",
    "maybe_get_level",
]


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor that a batched one hides a dimension of, with this dimension in front."""
    if not isinstance(tensor, BatchedTensor):
        raise RuntimeError("Not a wrapped tensor")
    return tensor._value


def maybe_get_bdim(tensor: Tensor) -> int:
    """Which dimension a batched tensor hides of another, the first; -1 for all others."""
    return 0 if is_batchedtensor(tensor) else -1


def maybe_get_level(tensor: Tensor) -> int:
    """How many vmaps deep a tensor is batched, counted from 1; -1 if it is not batched."""
    return tensor._level.index + 1 if isinstance(tensor, BatchedTensor) else -1
