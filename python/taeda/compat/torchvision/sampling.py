"""What the operations on regions share: weighted sums of rows of a table of pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F


def check_regions(name: str, input: Tensor, rois: Tensor) -> None:
    """Refuse regions that are no rows (image, x1, y1, x2, y2) of the input's dtype."""
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.dim() != 4:
        raise RuntimeError(f"{name}(): the input must have 4 dimensions, got {input.dim()}")
    if input.dtype is not rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )


def weighted_rows(table: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Return for each line of `rows` the sum of those rows of the table, times their weights."""
    if rows.size(1) == 0:
        return table.new_zeros(rows.size(0), table.size(1))
    return F.embedding_bag(rows, table, mode="sum", per_sample_weights=weights)


def sample_axis(
    start: Tensor, bin_size: Tensor, bins: int, grid: int, size: int
) -> tuple[Tensor, Tensor]:
    """Place the samples of each region along one axis, for linear interpolation.

    Args:
        start: where each of K regions begins.
        bin_size: the length of its bins.
        bins: the number of bins.
        grid: the number of samples in a bin, spaced evenly.
        size: the length of the axis.

    Returns:
        The two neighbours of each sample and their weights, both of shape [K, bins, grid, 2]. The
        weights of a sample more than one outside the axis are zero.
    """
    bin_number = taeda.arange(bins, dtype=start.dtype)
    steps = taeda.arange(grid, dtype=start.dtype) + 0.5
    length = bin_size[:, None, None]
    at = start[:, None, None] + bin_number[:, None] * length + steps * length / max(grid, 1)
    inside = (at >= -1) & (at <= size)
    at = at.clamp(min=0)
    low = at.clamp(max=size - 1).long()
    part = taeda.where(low >= size - 1, taeda.zeros_like(at), at - low)
    weights = taeda.stack([1 - part, part], -1) * inside[..., None]
    return taeda.stack([low, (low + 1).clamp(max=size - 1)], -1), weights


def pixel_grid(
    y: tuple[Tensor, Tensor], x: tuple[Tensor, Tensor], width: int
) -> tuple[Tensor, Tensor]:
    """Cross the samples of two axes.

    Returns:
        The pixels, ``row * width + column``, and their weights: [K, bins_y, bins_x, samples].
    """

    def cross(a: Tensor, b: Tensor, how: Callable[[Tensor, Tensor], Any]) -> Tensor:
        both: Tensor = how(a[:, :, None, :, None, :, None], b[:, None, :, None, :, None, :])
        return both.flatten(3)

    pixels = cross(y[0], x[0], lambda row, column: row * width + column)
    return pixels, cross(y[1], x[1], taeda.mul)


def groups_of_grids(
    sampling_ratio: int, bin_h: Tensor, bin_w: Tensor
) -> list[tuple[int, int, Tensor]]:
    """Return the numbers of samples in a bin, and which regions have them.

    Without a fixed number it is the size of a bin, rounded up, so regions differ.
    """
    if sampling_ratio > 0:
        return [(sampling_ratio, sampling_ratio, taeda.arange(len(bin_h)))]
    grids = taeda.stack([bin_h.ceil(), bin_w.ceil()], 1).clamp(min=0).long()
    found: dict[tuple[int, int], list[int]] = {}
    for index, (high, wide) in enumerate(grids.tolist()):
        found.setdefault((high, wide), []).append(index)
    return [(high, wide, taeda.tensor(which)) for (high, wide), which in found.items()]


def gradient_of(
    forward: Callable[..., Tensor], grad: Tensor, shape: tuple[int, ...], *arguments: Any
) -> Tensor:
    """The derivative of a `forward` that is linear in its input, whose value does not matter."""
    with taeda.enable_grad():
        input = grad.new_zeros(shape).requires_grad_()
        return taeda.autograd.grad(forward(input, *arguments), input, grad)[0]
