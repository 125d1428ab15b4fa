"""Pooling: each element of the result is a maximum, a mean or a norm over a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from taeda._C import Tensor, ops
from taeda.nn.functional._formats import in_format_of

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _each(value: Any, count: int) -> tuple[Any, ...]:
    if isinstance(value, (int, float)) or value is None:
        return (value,) * count
    value = tuple(value)
    return value * count if len(value) == 1 else value


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window.

    Args:
        input: of shape (N, C, L) or (C, L).
        kernel_size: the length of a window.
        stride: the step between windows, by default the length of one.
        padding: how many elements of minus infinity are put at both ends.
        dilation: the distance between elements of a window.
        ceil_mode: include a last window that is not whole.
        return_indices: return also where along L each largest element was.
    """
    op = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return op(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of an input (N, C, H, W) or (C, H, W).

    The arguments are those of `max_pool1d`, each a number or one for H and one for W. The indices
    count through the H x W plane.
    """
    op = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return op(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of an input (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of `max_pool1d`, each a number or one for each of D, H and W. The
    indices count through the D x H x W volume.
    """
    op = ops.max_pool3d_with_indices if return_indices else ops.max_pool3d
    return op(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """`max_pool1d` with `return_indices` on by default."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """`max_pool2d` with `return_indices` on by default."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """`max_pool3d` with `return_indices` on by default."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _sizes(kind: str, input: Tensor, output_size: Any, rank: int) -> tuple[int, ...]:
    """The output's sizes, each None among them replaced by the input's."""
    who = f"adaptive_{kind}_pool{rank}d"
    several = isinstance(output_size, (tuple, list))
    given = tuple(output_size) if several else _each(output_size, rank)
    if rank > 1 and several and input.dim() <= len(given):
        raise ValueError(
            f"{who}: Input dimension should be at least {len(given) + 1}, got {input.dim()}"
        )
    if len(given) != rank:
        raise RuntimeError(f"{who}: output_size must be {rank} ints, got {len(given)} of them")
    if input.dim() not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{who}: expected {rank + 1}D or {rank + 2}D input, got shape {list(input.shape)}"
        )
    return tuple(
        own if size is None else size for own, size in zip(input.shape[-rank:], given, strict=True)
    )


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover an input (N, C, H, W) or (C, H, W) evenly.

    Args:
        input: the input.
        output_size: a number, or one for H and one for W; None keeps the input's size.
    """
    return ops.adaptive_avg_pool2d(input, _sizes("avg", input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover an input (N, C, D, H, W) or (C, D, H, W) evenly.

    See `adaptive_avg_pool2d`.
    """
    return ops.adaptive_avg_pool3d(input, _sizes("avg", input, output_size, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that cover an input (N, C, L) or (C, L) evenly.

    With `return_indices`, return also where along L they were.
    """
    result, indices = ops.adaptive_max_pool1d(input, _sizes("max", input, output_size, 1))
    return (result, indices) if return_indices else result


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows that cover an input (N, C, H, W) or (C, H, W) evenly.

    Args:
        input: the input.
        output_size: a number, or one for H and one for W; None keeps the input's size.
        return_indices: return also where in the H x W plane they were.
    """
    result, indices = ops.adaptive_max_pool2d(input, _sizes("max", input, output_size, 2))
    return (result, indices) if return_indices else result


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of windows that cover an input (N, C, D, H, W) or (C, D, H, W) evenly.

    See `adaptive_max_pool2d`.
    """
    result, indices = ops.adaptive_max_pool3d(input, _sizes("max", input, output_size, 3))
    return (result, indices) if return_indices else result


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = True
) -> Any:
    """`adaptive_max_pool1d` with `return_indices` on by default."""
    return adaptive_max_pool1d(input, output_size, return_indices)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = True
) -> Any:
    """`adaptive_max_pool2d` with `return_indices` on by default."""
    return adaptive_max_pool2d(input, output_size, return_indices)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = True
) -> Any:
    """`adaptive_max_pool3d` with `return_indices` on by default."""
    return adaptive_max_pool3d(input, output_size, return_indices)


def _lp_pool(
    pool: Callable[..., Any], rank: int, input: Tensor, norm_type: float, kernel_size: Any,
    stride: Any, ceil_mode: bool,
) -> Tensor:  # fmt: skip
    means = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    count = prod(_each(kernel_size, rank))
    return (means.sign() * means.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The sum of x ** norm_type over each window, to the power 1 / norm_type.

    The other arguments are those of `avg_pool1d`.
    """
    return _lp_pool(ops.avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """`lp_pool1d` for an input (N, C, H, W) or (C, H, W)."""
    return _lp_pool(ops.avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """`lp_pool1d` for an input (N, C, D, H, W) or (C, D, H, W)."""
    return _lp_pool(ops.avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


def _max_unpool(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
    output_size: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    if indices.shape != input.shape:
        raise RuntimeError(
            f"max_unpool{rank}d: expected shape of indices to be that of input, "
            f"{list(input.shape)}, got {list(indices.shape)}"
        )
    kernel = _each(kernel_size, rank)
    step = kernel if stride is None else _each(stride, rank)
    default = [
        (size - 1) * s + k - 2 * p
        for size, s, k, p in zip(
            input.shape[-rank:], step, kernel, _each(padding, rank), strict=True
        )
    ]
    sizes = default if output_size is None else list(output_size)[-rank:]
    for size, usual, s in zip(sizes, default, step, strict=True):
        if not usual - s < size < usual + s:
            raise ValueError(
                f"max_unpool{rank}d: invalid output_size {sizes}: each must be less than a stride "
                f"away from {default}"
            )
    lead = input.shape[: input.dim() - rank]
    flat = input.new_zeros((*lead, prod(sizes)))
    flat = flat.scatter(-1, indices.flatten(-rank), input.flatten(-rank))
    result = flat.reshape((*lead, *sizes))
    return in_format_of(input, result) if rank == 2 else result


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Put the maxima that `max_pool1d` found back where they were, among zeros.

    Args:
        input: the maxima.
        indices: where they were, from `return_indices=True`.
        kernel_size, stride, padding: those of the pooling.
        output_size: the size to restore, where pooling maps several to one.
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Undo `max_pool2d`; see `max_unpool1d`."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Undo `max_pool3d`; see `max_unpool1d`."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
