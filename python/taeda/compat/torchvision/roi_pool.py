"""Regions of a feature map, and the largest value of each of their bins."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .sampling import check_regions


def rounded(value: Tensor) -> Tensor:
    """Round to the nearest whole number, halves away from zero."""
    return value.sign() * (value.abs() + 0.5).floor()


def edges(
    start: Tensor, bin_size: Tensor, bins: int, last: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Where the bins of each region begin and end, in pixels from 0 to `last`."""
    number = taeda.arange(bins, dtype=bin_size.dtype)
    low = (number * bin_size[:, None]).floor() + start[:, None]
    high = ((number + 1) * bin_size[:, None]).ceil() + start[:, None]
    return low.clamp(0, last).long().tolist(), high.clamp(0, last).long().tolist()


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Return the largest value of each bin, [K, C, pooled_height, pooled_width], and its pixel.

    A bin without pixels has the value 0 and the pixel -1. See `roi_align` for the arguments.
    """
    check_regions("roi_pool", input, rois)
    channels, height, width = input.shape[1:]
    x1, y1, x2, y2 = rounded(rois[:, 1:] * spatial_scale).unbind(1)
    bin_w = (x2 - x1 + 1).clamp(min=1) / pooled_width
    bin_h = (y2 - y1 + 1).clamp(min=1) / pooled_height
    tops, bottoms = edges(y1, bin_h, pooled_height, height)
    lefts, rights = edges(x1, bin_w, pooled_width, width)
    shape = (len(rois), channels, pooled_height, pooled_width)
    output, argmax = input.new_zeros(shape), taeda.full(shape, -1, dtype=taeda.int32)
    for k, image in enumerate(rois[:, 0].long().tolist()):
        for i, (top, bottom) in enumerate(zip(tops[k], bottoms[k], strict=True)):
            for j, (left, right) in enumerate(zip(lefts[k], rights[k], strict=True)):
                if top >= bottom or left >= right:
                    continue
                part = input[image, :, top:bottom, left:right].flatten(1)
                output[k, :, i, j], at = part.max(1)
                wide = right - left
                argmax[k, :, i, j] = (at // wide + top) * width + at % wide + left
    return output, argmax


def roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of `roi_pool` for its input: each bin's goes to its pixel."""
    image = rois[:, 0].long()[:, None, None, None]
    channel = taeda.arange(channels)[:, None, None]
    at = (image * channels + channel) * (height * width) + argmax
    used = argmax >= 0
    total = grad.new_zeros(batch_size * channels * height * width)
    total.index_add_(0, at[used], grad[used])
    return total.view(batch_size, channels, height, width)
