"""Windows as columns, and the order of channels."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor, channels_last, channels_last_3d, ops

__all__ = ["channel_shuffle", "fold", "native_channel_shuffle", "unfold"]


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels of groups: (*, g n, ...) seen as (g, n) is transposed.

    Args:
        input: of shape (N, C, ...).
        groups: how many groups the channels are divided into (Zhang et al., 2017).

    Raises:
        RuntimeError: the number of channels is no multiple of `groups`.
    """
    if input.dim() < 3:
        raise RuntimeError(
            "channel_shuffle: channel_shuffle expects input with > 2 dims, but got input with "
            f"sizes {list(input.shape)}"
        )
    channels = input.size(1)
    if groups <= 0 or channels % groups:
        raise RuntimeError(
            f"channel_shuffle: the number of channels must be divisible by groups, got {channels} "
            f"and {groups}"
        )
    split = input.unflatten(1, (groups, channels // groups))
    shuffled = split.transpose(1, 2).flatten(1, 2)
    format = {4: channels_last, 5: channels_last_3d}.get(input.dim())
    if format and not input.is_contiguous() and input.is_contiguous(memory_format=format):
        return shuffled.contiguous(memory_format=format)
    return shuffled.clone() if groups in (1, channels) else shuffled  # never a view


def _pair(name: str, value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        return (value, value)
    if len(value) > 2 or not value:
        raise RuntimeError(f"{name} must be a number or two, one for each dimension, got {value}")
    return (value[0], value[-1])


def _window(
    name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[tuple[int, int], ...]:
    """Each of them for H and W."""
    return (
        _pair(f"{name}: kernel_size", kernel_size),
        _pair(f"{name}: dilation", dilation),
        _pair(f"{name}: padding", padding),
        _pair(f"{name}: stride", stride),
    )


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows that a convolution would see, one in each column.

    Args:
        input: of shape (N, C, H, W) or (C, H, W).
        kernel_size, dilation, padding, stride: a number, or one for H and one for W.

    Returns:
        a tensor of shape (N, C * window size, number of windows).
    """
    if input.dim() == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    return ops._im2col(input, *_window("unfold", kernel_size, dilation, padding, stride))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The sum of windows put back where `unfold` took them from.

    Args:
        input: of shape (N, C * window size, number of windows), or without N.
        output_size: H and W of the result.
        kernel_size, dilation, padding, stride: those of `unfold`.

    Returns:
        a tensor of shape (N, C, H, W), or without N.
    """
    if input.dim() == 2:
        whole = fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return whole.squeeze(0)
    size = _pair("fold: output_size", output_size)
    window = _window("fold", kernel_size, dilation, padding, stride)
    return ops._col2im(input, size, *window)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle`, under its other name."""
    return channel_shuffle(input, groups)
