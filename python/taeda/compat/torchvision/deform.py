"""Convolution whose kernel reads at places of its own for every pixel of the result."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .sampling import weighted_rows


def _positions(
    offset: Tensor,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """The rows and columns that are read: each [N * offset groups, kernel, out_h, out_w]."""
    out_h, out_w = offset.shape[2:]
    taps = kernel[0] * kernel[1]
    moved = offset.reshape(-1, taps, 2, out_h, out_w)

    def regular(taps_along: Tensor, axis: int, size: int) -> Tensor:
        out = taeda.arange(size, dtype=offset.dtype) * stride[axis] - pad[axis]
        return out + (taps_along * dilation[axis])[:, None]

    number = taeda.arange(taps)
    rows = regular((number // kernel[1]).to(offset.dtype), 0, out_h)[:, :, None]
    columns = regular((number % kernel[1]).to(offset.dtype), 1, out_w)[:, None, :]
    return rows + moved[:, :, 0], columns + moved[:, :, 1]


def _neighbours(at: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The two pixels around each place along an axis, and their weights: zero outside."""
    low = at.detach().floor()
    both = taeda.stack([low, low + 1], -1)
    part = at - low
    inside = (both >= 0) & (both < size)
    return both.clamp(0, size - 1).long(), taeda.stack([1 - part, part], -1) * inside


def _columns(
    input: Tensor, y: Tensor, x: Tensor, mask: Tensor | None, offset_groups: int
) -> Tensor:
    """What every tap of the kernel reads: [N, C, taps, out_h * out_w]."""
    batch, channels, height, width = input.shape
    taps = y.size(1)
    rows, row_weights = _neighbours(y, height)
    columns, column_weights = _neighbours(x, width)
    pixels = rows[..., :, None] * width + columns[..., None, :]
    weights = row_weights[..., :, None] * column_weights[..., None, :]
    if mask is not None:
        weights = weights * mask.reshape(y.shape)[..., None, None]
    image = taeda.arange(y.size(0)).view(-1, 1, 1, 1, 1, 1) * (height * width)
    per_group = channels // offset_groups
    table = input.reshape(-1, per_group, height * width).transpose(1, 2).reshape(-1, per_group)
    read = weighted_rows(table, (pixels + image).view(-1, 4), weights.reshape(-1, 4))
    return (
        read.view(batch, offset_groups, taps, -1, per_group)
        .permute(0, 1, 4, 2, 3)
        .reshape(batch, channels, taps, -1)
    )


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """Convolve [N, C, H, W], reading at places moved by `offset`, times `mask` if it is used.

    Args:
        input: the images.
        weight: [out_channels, C / groups, kernel_h, kernel_w].
        offset: [N, 2 * offset_groups * kernel_h * kernel_w, out_h, out_w], rows before columns.
        mask: [N, offset_groups * kernel_h * kernel_w, out_h, out_w].
        bias: [out_channels].
        stride_h: the step downwards.
        stride_w: the step to the right.
        pad_h: zeros above and below.
        pad_w: zeros at the left and the right.
        dilation_h: the distance of the kernel's rows.
        dilation_w: the distance of the kernel's columns.
        groups: parts that channels are convolved in.
        offset_groups: parts of the channels that have offsets of their own.
        use_mask: whether the mask counts.
    """
    batch = input.size(0)
    kernel = (weight.size(2), weight.size(3))
    taps, (out_h, out_w) = kernel[0] * kernel[1], offset.shape[2:]
    for name, given, size in (("offset", offset, 2), ("mask", mask if use_mask else None, 1)):
        if given is not None and given.size(1) != size * offset_groups * taps:
            raise RuntimeError(
                f"{name}.shape[1] is not valid: got: {given.size(1)} expected: "
                f"{size * offset_groups * taps}"
            )
    strides, pads = (stride_h, stride_w), (pad_h, pad_w)
    y, x = _positions(offset, kernel, strides, pads, (dilation_h, dilation_w))
    read = _columns(input, y, x, mask if use_mask else None, offset_groups)
    read = read.reshape(batch, groups, -1, out_h * out_w)
    out = weight.reshape(groups, weight.size(0) // groups, -1) @ read
    return out.view(batch, -1, out_h, out_w) + bias[:, None, None]


def deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    *options: int,
) -> tuple[Tensor, ...]:
    """The gradients of `deform_conv2d` for its input, weight, offset, mask and bias."""
    with taeda.enable_grad():
        given = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
        output = deform_conv2d(*given, *options)  # type: ignore[arg-type]
        return taeda.autograd.grad(output, given, grad, allow_unused=True, materialize_grads=True)
