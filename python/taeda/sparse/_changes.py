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
def _to_copy(
    input: SparseTensor,
    *,
    dtype: Any = None,
    device: Any = None,
    memory_format: Any = None,
    non_blocking: bool = False,
) -> SparseTensor:
    return _clone(input).to(device or input.device, dtype or input.dtype, non_blocking)


@answers("zeros_like", "empty_like")
def _zeros_like(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    if layout not in (None, input.layout):
        return _ops.zeros(
            tuple(input.shape),
            dtype=dtype or input.dtype,
            layout=layout,
            device=device,
            requires_grad=requires_grad,
        )
    result = _no_elements(input, dtype).to(device or input.device)
    return result.requires_grad_() if requires_grad else result


def _no_elements(input: SparseTensor, dtype: Any = None) -> SparseTensor:
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


def _check_resize(
    who: str, input: SparseTensor, size: tuple[int, ...], sparse_dim: int, dense_dim: int
) -> None:
    """Raise RuntimeError unless a tensor with elements has a place for them in the new size."""
    shape, at = tuple(input.shape), input.sparse_dim()
    for kind, before, after in [
        ("sparse", at, sparse_dim),
        ("dense", input.dense_dim(), dense_dim),
    ]:
        if before != after:
            raise RuntimeError(
                f"{who}(): changing the number of {kind} dimensions (from {before} to {after}) on "
                "a non-empty sparse tensor is not supported"
            )
    for kind, old, new in [
        ("sparse", shape[:at], size[:at]),
        ("dense", shape[at:], size[at:]),
    ]:
        if any(b < a for a, b in zip(old, new, strict=True)):
            raise RuntimeError(
                f"{who}(): shrinking the size of {kind} dimensions (from {list(old)} to "
                f"{list(new)}) on a non-empty sparse tensor is not supported"
            )


def sparse_resize(who: str, input: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """`Tensor.sparse_resize_`, or `sparse_resize_and_clear_`, as `who` says."""
    if not isinstance(input, SparseTensor) or not input.is_sparse:
        raise NotImplementedError(
            f"{who}(): expected a tensor of layout sparse_coo, got one of layout {input.layout}"
        )
    sizes = tuple(int(n) for n in size)
    if len(sizes) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"{who}(): expected sparse_dim + dense_dim = {sparse_dim} + {dense_dim} sizes, got "
            f"{list(sizes)}"
        )
    if min((sparse_dim, dense_dim, *sizes)) < 0:
        raise RuntimeError(
            f"{who}(): sizes and numbers of dimensions must not be negative, got {list(sizes)}, "
            f"{sparse_dim} and {dense_dim}"
        )
    values, indices, sorted_ = input._values_, input._indices_, input._coalesced
    if who == "sparse_resize_" and input._nnz():
        _check_resize(who, input, sizes, sparse_dim, dense_dim)
        grown = values.detach().new_zeros((input._nnz(), *sizes[sparse_dim:]))
        grown.view(-1)[: values.numel()] = values.detach().reshape(-1)
        resized = coo(indices, grown, sizes, sorted_)
    else:
        indices = _ops.zeros((sparse_dim, 0), dtype=taeda.int64, device=values.device)
        resized = coo(indices, values.detach().new_zeros((0, *sizes[sparse_dim:])), sizes, True)
    wanted = input.requires_grad
    _become(input, resized)
    input._exchange_data(resized)
    return input.requires_grad_(wanted)


@answers("zero_")
def _zero_(input: SparseTensor) -> SparseTensor:
    return _become(input, _no_elements(input))


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
