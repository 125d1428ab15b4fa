"""Padding, and the moves of elements between channels and space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda._C import Tensor, ops

__all__ = [
    "channel_shuffle", "fold", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle",
    "unfold",
]  # fmt: skip


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Add elements at the ends of the last dimensions; negative amounts take away.

    Args:
        input: the input.
        pad: how many at the start and the end of the last dimension, then of the one before it,
            and so on.
        mode: "constant", "reflect", "replicate" or "circular".
        value: what "constant" adds, by default 0.

    >>> taeda.nn.functional.pad(taeda.tensor([1, 2]), (1, 2))
    tensor([0, 1, 2, 0, 0])
    """
    if value is None:
        return ops.pad(input, pad, mode)
    return ops.pad(input, pad, mode, value)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Move channels into space: (*, C r², H, W) becomes (*, C, H r, W r) (Shi et al., 2016).

    Raises:
        RuntimeError: the number of channels is no multiple of r².
    """
    r = upscale_factor
    _check_spatial("pixel_shuffle", input, r)
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible "
            f"by the square of upscale_factor, but input.size(-3)={channels} is not divisible by "
            f"{r * r}"
        )
    split = input.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.reshape(*lead, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Undo `pixel_shuffle`: (*, C, H r, W r) becomes (*, C r², H, W).

    Raises:
        RuntimeError: the height or the width is no multiple of r.
    """
    r = downscale_factor
    _check_spatial("pixel_unshuffle", input, r)
    *lead, channels, height, width = input.shape
    if height % r or width % r:
        raise RuntimeError(
            "pixel_unshuffle expects height and width to be divisible by "
            f"downscale_factor, but {height} x {width} is not divisible by {r}"
        )
    split = input.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.reshape(*lead, channels * r * r, height // r, width // r)


def _check_spatial(name: str, input: Tensor, factor: int) -> None:
    if input.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive factor, but got {factor}")


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
    return split.transpose(1, 2).flatten(1, 2)


def _pair(name: str, value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        return (value, value)
    if len(value) > 2 or not value:
        raise RuntimeError(f"{name} must be a number or two, one for each dimension, got {value}")
    return (value[0], value[-1])


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
    if input.dim() != 4:
        raise RuntimeError(f"unfold: expected a 3D or 4D input, got {input.dim()}D")
    kh, kw = _pair("unfold: kernel_size", kernel_size)
    dh, dw = _pair("unfold: dilation", dilation)
    ph, pw = _pair("unfold: padding", padding)
    sh, sw = _pair("unfold: stride", stride)
    for name, numbers in (("kernel_size", (kh, kw)), ("dilation", (dh, dw)), ("stride", (sh, sw))):
        if min(numbers) < 1:
            raise RuntimeError(f"unfold: {name} should be greater than zero, but got {numbers}")
    if ph or pw:
        input = ops.pad(input, (pw, pw, ph, ph))
    windows = input.unfold(2, dh * (kh - 1) + 1, sh).unfold(3, dw * (kw - 1) + 1, sw)
    windows = windows[..., ::dh, ::dw]  # (N, C, rows, columns, kh, kw)
    return windows.permute(0, 1, 4, 5, 2, 3).flatten(4).flatten(1, 3)


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
    if input.dim() != 3:
        raise RuntimeError(f"fold: expected a 2D or 3D input, got {input.dim()}D")
    height, width = _pair("fold: output_size", output_size)
    ph, pw = _pair("fold: padding", padding)
    kh, kw = _pair("fold: kernel_size", kernel_size)
    tall, wide = height + 2 * ph, width + 2 * pw
    numbers = ops.arange(tall * wide, device=input.device).reshape(1, 1, tall, wide)
    places = unfold(numbers, kernel_size, dilation, 0, stride)[0]  # (window, number of windows)
    if input.size(1) % (kh * kw) or input.size(2) != places.size(1):
        raise RuntimeError(
            f"fold: for these sizes, the input should be of shape (N, C * {kh * kw}, "
            f"{places.size(1)}), got {list(input.shape)}"
        )
    columns = input.unflatten(1, (-1, kh * kw)).flatten(2)
    result = input.new_zeros((input.size(0), columns.size(1), tall * wide))
    result = result.index_add(2, places.flatten(), columns).unflatten(2, (tall, wide))
    return result[:, :, ph : ph + height, pw : pw + width].contiguous()


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle`, under its other name."""
    return channel_shuffle(input, groups)
