"""Regions of a feature map, sampled linearly and averaged into bins."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .sampling import (
    check_regions,
    gradient_of,
    groups_of_grids,
    pixel_grid,
    sample_axis,
    weighted_rows,
)


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Return [K, C, pooled_height, pooled_width]: each region, averaged over a grid of samples.

    Args:
        input: [N, C, H, W].
        rois: [K, 5]: the image and the box (x1, y1, x2, y2).
        spatial_scale: what boxes are multiplied by.
        pooled_height: the number of bins downwards.
        pooled_width: the number of bins to the right.
        sampling_ratio: the number of samples in a bin along each axis; by its size if not positive.
        aligned: whether pixels' centres are at halves, so that boxes are moved by -0.5.
    """
    check_regions("roi_align", input, rois)
    batch, channels, height, width = input.shape
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)).unbind(1)
    wide, high = x2 - x1, y2 - y1
    if not aligned:
        wide, high = wide.clamp(min=1), high.clamp(min=1)
    bin_h, bin_w = high / pooled_height, wide / pooled_width
    table = input.permute(0, 2, 3, 1).reshape(batch * height * width, channels)
    first = rois[:, 0].long() * (height * width)
    parts, order = [], []
    for grid_h, grid_w, which in groups_of_grids(sampling_ratio, bin_h, bin_w):
        y = sample_axis(y1[which], bin_h[which], pooled_height, grid_h, height)
        x = sample_axis(x1[which], bin_w[which], pooled_width, grid_w, width)
        pixels, weights = pixel_grid(y, x, width)
        pixels = (pixels + first[which, None, None, None]).flatten(0, 2)
        parts.append(weighted_rows(table, pixels, weights.flatten(0, 2)) / max(grid_h * grid_w, 1))
        order.append(which)
    pooled = (len(rois), pooled_height, pooled_width, channels)
    if not parts:
        return (input.sum() * 0).expand(0, *pooled[1:]).permute(0, 3, 1, 2)
    bins = taeda.cat([p.reshape(-1, *pooled[1:]) for p in parts])
    return bins[taeda.cat(order).argsort()].permute(0, 3, 1, 2).contiguous()


def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """The gradient of `roi_align` for its input."""
    shape = (batch_size, channels, height, width)
    options = (rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
    return gradient_of(roi_align, grad, shape, *options)
