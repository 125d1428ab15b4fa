"""Copies of sparse tensors, and changes in place."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda.sparse._functions import _add, _div, _mul, _neg, _same_shape
from taeda.sparse._tensor import SparseTensor, answers, compressed, coo, like

_ops = _C.ops


@answers("clone")
def _clone(input: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    copy = like(input, input._values_.clone())
    copy._rows = None
    if copy.is_sparse:
        copy._indices_ = input._indices_.clone()
    else:
        copy._starts, copy._places = input._starts.clone(), input._places.clone()
    return copy


@answers("_to_copy")
def _to_copy(input: SparseTensor, dtype: Any, device: Any, memory_format: Any) -> SparseTensor:
    return _clone(input).to(device or input.device, dtype or input.dtype)


@answers("zeros_like", "empty_like")
def _zeros_like(input: SparseTensor, *, dtype: Any = None) -> SparseTensor:
    at = input._batch_dim()
    values = input._values_.detach().narrow(at, 0, 0).to(dtype or input.dtype)
    if not input.is_sparse:
        starts, places = _ops.zeros_like(input._starts), input._places.narrow(at, 0, 0)
        return compressed(input.layout, starts, places, values, tuple(input.shape))
    return coo(input._indices_[:, :0], values, tuple(input.shape), True)


def _become(input: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Give a tensor the elements of another."""
    if input.requires_grad and input.is_leaf and taeda.is_grad_enabled():
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"result type {other.dtype} can't be cast to the desired output type {input.dtype}"
        )
    if input.is_sparse:
        input._indices_ = other._indices_
    else:
        input._starts, input._places = other._starts, other._places
    input._values_, input._coalesced, input._rows = other._values_, other._coalesced, other._rows
    return input


@answers("zero_")
def _zero_(input: SparseTensor) -> SparseTensor:
    return _become(input, _zeros_like(input))


@answers("add_")
def _add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError("add_(): only a sparse tensor can be added to a sparse one in place")
        return _become(input, _add(input, other, alpha=alpha))
    _same_shape(input, other)
    positions, values = other._elements()
    if len(positions) == 1:
        return input.index_add_(0, positions[0], values.to(input.dtype), alpha=alpha)
    scaled = values if alpha == 1 else values * alpha
    if not positions:
        return input.add_(scaled.sum(0))
    return input.index_put_(positions, scaled.to(input.dtype), accumulate=True)


@answers("sub_")
def _sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add_(input, other, alpha=-alpha)


@answers("mul_")
def _mul_(input: Any, other: Any) -> Any:
    if not isinstance(input, SparseTensor):
        raise NotImplementedError("mul_(): a dense tensor cannot be multiplied in place by sparse")
    return _become(input, _mul(input, other))


@answers("div_")
def _div_(input: Any, other: Any) -> Any:
    return _become(input, _div(input, other))


@answers("neg_")
def _neg_(input: SparseTensor) -> SparseTensor:
    return _become(input, _neg(input))


@answers("copy_")
def _copy_(input: Any, other: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        raise RuntimeError("copy_(): both tensors must be sparse, or both dense")
    if input.layout != other.layout or input.shape != other.shape:
        raise RuntimeError(
            f"copy_(): expected layout {input.layout} and shape {list(input.shape)}, got "
            f"{other.layout} and {list(other.shape)}"
        )
    return _become(input, _clone(other).to(input.dtype))
