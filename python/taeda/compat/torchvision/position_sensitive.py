"""Regions whose bins are averaged each over channels of its own."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .roi_pool import edges, rounded
from .sampling import (
    check_regions,
    gradient_of,
    groups_of_grids,
    pixel_grid,
    sample_axis,
    weighted_rows,
)


def _channels(name: str, input: Tensor, pooled_height: int, pooled_width: int) -> int:
    """The number of channels of the result."""
    bins = pooled_height * pooled_width
    if input.size(1) % bins:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return input.size(1) // bins


def _channel_mapping(regions: int, channels: int, pooled_height: int, pooled_width: int) -> Tensor:
    """The input's channel of each value of the result."""
    mapping = taeda.arange(channels * pooled_height * pooled_width, dtype=taeda.int32)
    return mapping.view(channels, pooled_height, pooled_width).repeat(regions, 1, 1, 1)


def _table(input: Tensor, channels: int) -> Tensor:
    """The input with one row per image, bin and pixel, and the result's channels as columns."""
    batch, total, height, width = input.shape
    split = input.view(batch, channels, total // channels, height, width)
    return split.permute(0, 2, 3, 4, 1).reshape(-1, channels)


def _bin_offsets(rois: Tensor, pooled_height: int, pooled_width: int, pixels: int) -> Tensor:
    """The first row in `_table` of each region and bin: [K, pooled_height, pooled_width]."""
    number = taeda.arange(pooled_height * pooled_width).view(pooled_height, pooled_width)
    images = rois[:, 0].long()[:, None, None]
    return (images * (pooled_height * pooled_width) + number) * pixels


def _aligned(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> Tensor:
    channels = _channels("ps_roi_align", input, pooled_height, pooled_width)
    height, width = input.shape[2:]
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - 0.5).unbind(1)
    bin_h, bin_w = (y2 - y1) / pooled_height, (x2 - x1) / pooled_width
    table = _table(input, channels)
    offsets = _bin_offsets(rois, pooled_height, pooled_width, height * width)
    output = input.new_zeros(len(rois), pooled_height, pooled_width, channels)
    for grid_h, grid_w, which in groups_of_grids(sampling_ratio, bin_h, bin_w):
        y = sample_axis(y1[which], bin_h[which], pooled_height, grid_h, height)
        x = sample_axis(x1[which], bin_w[which], pooled_width, grid_w, width)
        pixels, weights = pixel_grid(y, x, width)
        rows = (pixels + offsets[which][..., None]).flatten(0, 2)
        values = weighted_rows(table, rows, weights.flatten(0, 2)) / (grid_h * grid_w or 1)
        output = output.index_copy(0, which, values.view(-1, *output.shape[1:]))
    return output.permute(0, 3, 1, 2).contiguous()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """Return regions sampled as by `roi_align` (aligned), and the channel that each bin read."""
    check_regions("ps_roi_align", input, rois)
    options = (spatial_scale, pooled_height, pooled_width)
    output = _aligned(input, rois, *options, sampling_ratio)
    return output, _channel_mapping(len(rois), output.size(1), pooled_height, pooled_width)


def ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of `ps_roi_align` for its input. The mapping follows from the shapes."""
    del channel_mapping
    shape = (batch_size, channels, height, width)
    options = (rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)
    return gradient_of(_aligned, grad, shape, *options)


def _pooled(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    left_out: int,
) -> Tensor:
    """The means. `left_out`: how many of the last rows and columns no bin reaches."""
    channels = _channels("ps_roi_pool", input, pooled_height, pooled_width)
    height, width = input.shape[2:]
    x1, y1, x2, y2 = rounded(rois[:, 1:] * spatial_scale).unbind(1)
    bin_w, bin_h = (x2 - x1).clamp(min=1) / pooled_width, (y2 - y1).clamp(min=1) / pooled_height
    tops, bottoms = edges(y1, bin_h, pooled_height, height - left_out)
    lefts, rights = edges(x1, bin_w, pooled_width, width - left_out)
    bins = input.view(input.size(0), channels, pooled_height, pooled_width, height, width)
    values = []
    for k, image in enumerate(rois[:, 0].long().tolist()):
        for i, (top, bottom) in enumerate(zip(tops[k], bottoms[k], strict=True)):
            for j, (left, right) in enumerate(zip(lefts[k], rights[k], strict=True)):
                part = bins[image, :, i, j, top:bottom, left:right]
                values.append(part.sum((1, 2)) / max(part[0].numel(), 1))
    shape = (len(rois), pooled_height, pooled_width, channels)
    flat = taeda.cat(values) if values else input.flatten()[:0]
    return flat.view(shape).permute(0, 3, 1, 2).contiguous()


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Return the mean of each bin's pixels, and the channel that each bin read."""
    check_regions("ps_roi_pool", input, rois)
    output = _pooled(input, rois, spatial_scale, pooled_height, pooled_width, 1)
    return output, _channel_mapping(len(rois), output.size(1), pooled_height, pooled_width)


def ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of `ps_roi_pool` for its input. The mapping follows from the shapes.

    As in torchvision it spreads over the last row and column too, which the result leaves out.
    """
    del channel_mapping
    shape = (batch_size, channels, height, width)
    return gradient_of(_pooled, grad, shape, rois, spatial_scale, pooled_height, pooled_width, 0)
