"""Masks, and the fill values for masked-out elements."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda._C import Tensor, ops

INTEGERS = (taeda.uint8, taeda.int8, taeda.int16, taeda.int32, taeda.int64)


def broadcast_mask(function: str, input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask in the shape of the input; None where there is none."""
    if mask is None:
        return None
    if mask.dim() > input.dim():
        raise IndexError(
            f"masked.{function}(): mask has {mask.dim()} dimensions, but input only {input.dim()}"
        )
    if mask.dtype != taeda.bool:
        mask = mask.to(taeda.bool)
    return mask.expand(input.shape)


def with_fill(function: str, input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with ``value`` where the mask is False."""
    spread = broadcast_mask(function, input, mask)
    if spread is None:
        return input
    return ops.where(spread, input, ops.scalar_tensor(value, dtype=input.dtype))


def lowest(function: str, dtype: Any) -> Any:
    """The least value of a dtype, which is the identity of a maximum."""
    if dtype in INTEGERS:
        return taeda.iinfo(dtype).min
    return _infinite(function, dtype, -math.inf)


def highest(function: str, dtype: Any) -> Any:
    """The greatest value of a dtype, which is the identity of a minimum."""
    if dtype in INTEGERS:
        return taeda.iinfo(dtype).max
    return _infinite(function, dtype, math.inf)


def _infinite(function: str, dtype: Any, value: float) -> float:
    if not dtype.is_floating_point:
        raise NotImplementedError(f"identity of {function} on {dtype} input")
    return value


def converted(input: Tensor, dtype: Any) -> Tensor:
    """The input in the dtype that was asked for, if one was."""
    return input if dtype is None else input.to(dtype)


def count(function: str, input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    """The number of elements in each result (int64)."""
    spread = broadcast_mask(function, input, mask)
    if spread is None:
        spread = ops.ones(input.shape, dtype=taeda.bool, device=input.device)
    return spread.sum(dim, keepdim=keepdim)
