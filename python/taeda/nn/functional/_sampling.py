"""Resizing, and sampling at given points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda.nn.functional._formats import in_format_of
from taeda.nn.functional._pooling import adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = [
    "affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dimensions.

    Args:
        input: of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the new sizes, a number or one for each dimension; or else
        scale_factor: what the sizes are multiplied with, likewise.
        mode: "nearest", "nearest-exact", "area", "linear" (3D input), "bilinear" or "bicubic"
            (4D), "trilinear" (5D).
        align_corners: keep the values of the corners, for the linear and cubic modes.
        recompute_scale_factor: take the ratio of the rounded sizes instead of `scale_factor`.
        antialias: average over more elements when making smaller, for "bilinear" and "bicubic".

    >>> image = taeda.tensor([[[1.0, 2.0]]])
    >>> taeda.nn.functional.interpolate(image, scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    linear = mode in _RANKS
    if not linear and align_corners is not None:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating "
            "modes: linear | "
            "bilinear | bicubic | trilinear"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate: only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("interpolate: either size or scale_factor should be defined")
    rank = input.dim() - 2
    known = linear or mode in ("nearest", "nearest-exact", "area")
    if not known or not 1 <= rank <= 3:
        raise NotImplementedError(
            f"interpolate: 3D, 4D and 5D inputs are supported (got {input.dim()}D) for the modes: "
            "nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got "
            f"{mode})"
        )
    if linear and _RANKS[mode] != rank:
        raise NotImplementedError(
            f"interpolate: Got {input.dim()}D input, but {mode} mode needs {_RANKS[mode] + 2}D "
            "input"
        )
    if antialias and (mode not in ("bilinear", "bicubic")):
        raise ValueError(
            "interpolate: Anti-alias option is restricted to bilinear and bicubic modes "
            "and requires a 4-D "
            "tensor as input"
        )
    old = list(input.shape[2:])
    new, scales = _new_sizes(old, size, scale_factor, recompute_scale_factor)
    if any(count < 1 for count in (*old, *new)):
        raise RuntimeError(
            f"interpolate: input and output sizes must be greater than 0, got {old} to become {new}"
        )
    if mode == "area":
        pool = (ops.adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1]
        return pool(input, new)
    corners = bool(align_corners)
    steps = [_step(*one, corners) for one in zip(old, new, scales, strict=True)]
    if not linear:
        return ops._resample(input, new, steps, int(mode == "nearest-exact"), corners)
    how = (3 if mode == "bicubic" else 2) + (2 if antialias else 0)
    if input.dtype == taeda.uint8:
        # The last dimension first, with whole numbers in between.
        resized = input
        for dim in reversed(range(2, input.dim())):
            resized = _resize_bytes(resized, dim, new[dim - 2], steps[dim - 2], how, corners)
        return in_format_of(input, resized)
    if not input.is_floating_point():
        raise NotImplementedError(
            f"interpolate: expected floating point numbers or uint8, got {input.dtype}"
        )
    return ops._resample(input, new, steps, how, corners)


def _resize_bytes(
    input: Tensor, dim: int, after: int, step: float, how: int, corners: bool
) -> Tensor:
    """Resize whole numbers from 0 to 255 along a dimension, by weights that are multiples of 1/2^n.

    n is the largest that lets all weights fit into 16 bits, and the sums are rounded: so PyTorch
    gets by with whole numbers, and gives these values.
    """
    unit = ops.eye(input.size(dim), dtype=taeda.float64, device=input.device)
    weights = ops._resample(unit, [after], [step], how, corners)  # (before, after)
    bits = max(0, 14 - math.floor(math.log2(max(weights.abs().max().item(), 2**-16))))
    weights = (weights * 2.0**bits).round()
    sums = input.movedim(dim, -1).double() @ weights
    values = ((sums + 2.0 ** (bits - 1)) * 2.0**-bits).floor().clamp(0, 255)
    return values.to(taeda.uint8).movedim(-1, dim)


def _new_sizes(
    old: list[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    given = size if scale_factor is None else scale_factor
    values = list(given) if isinstance(given, (tuple, list)) else [given] * len(old)
    if len(values) != len(old):
        name = "output size" if scale_factor is None else "scale_factor"
        raise ValueError(
            "interpolate: Input and output must have the same number of spatial "
            "dimensions, but got input "
            f"with spatial dimensions of {old} and {name} of {given}."
        )
    if scale_factor is None:
        if recompute:
            raise ValueError(
                "interpolate: recompute_scale_factor is not meaningful with an explicit size."
            )
        return [int(v) for v in values], [None] * len(old)
    try:
        factors = [float(v) for v in values]
    except (TypeError, ValueError) as error:
        raise type(error)(f"interpolate: scale_factor: {error}") from None
    new = [math.floor(n * factor) for n, factor in zip(old, factors, strict=True)]
    return new, [None if recompute else factor for factor in factors]


def _step(before: int, after: int, scale: float | None, align_corners: bool) -> float:
    """The distance in the input between adjacent elements of the result."""
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return before / after if scale is None else 1.0 / scale


def _along(values: Tensor, dim: int, rank: int) -> Tensor:
    """A vector shaped to broadcast along one dimension."""
    return values.reshape([-1 if d == dim else 1 for d in range(rank)])


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: `interpolate` with `mode="nearest"`."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: `interpolate` with `mode="bilinear"` and `align_corners=True`."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, "bilinear", True)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that an affine map gives.

    Args:
        theta: of shape (N, 2, 3), or (N, 3, 4) for three spatial dimensions.
        size: that of the result of sampling: (N, C, H, W) or (N, C, D, H, W).
        align_corners: -1 and 1 are the centres of the outermost elements instead of their edges.

    Returns:
        a tensor of shape (N, H, W, 2) or (N, D, H, W, 3).
    """
    rank = len(size) - 2
    if not theta.is_floating_point():
        raise ValueError(
            f"affine_grid: Expected theta to have floating point type, but got {theta.dtype}"
        )
    if rank not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms; got size {tuple(size)}"
        )
    if tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"affine_grid: Expected a batch of {rank}D affine matrices of shape "
            f"Nx{rank}x{rank + 1} for size "
            f"{tuple(size)}. Got {tuple(theta.shape)}."
        )
    if any(count < 1 for count in size):
        raise ValueError(f"affine_grid: sizes must be positive, got size {tuple(size)}")
    spatial = list(size[2:])
    axes = []
    for dim, count in enumerate(spatial):
        if count == 1:
            line = theta.new_zeros((1,))
        else:
            line = ops.linspace(-1, 1, count, dtype=theta.dtype, device=theta.device)
            if not align_corners:
                line = line * ((count - 1) / count)
        axes.append(_along(line, dim, rank).expand(spatial))
    places = ops.stack([*reversed(axes), ops.ones_like(axes[0])], -1)
    return (places.reshape(1, -1, rank + 1) @ theta.transpose(1, 2)).reshape(
        size[0], *spatial, rank
    )


_SAMPLINGS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_OUTSIDES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample an input at the points of a grid.

    Args:
        input: of shape (N, C, H, W) or (N, C, D, H, W).
        grid: of shape (N, h, w, 2) or (N, d, h, w, 3): the points as (x, y) or (x, y, z), from
            -1 to 1 across the input.
        mode: "bilinear", "nearest", or for 4-dimensional inputs "bicubic".
        padding_mode: what is outside: "zeros", the "border", or a "reflection".
        align_corners: -1 and 1 are the centres of the outermost elements instead of their edges.

    Returns:
        a tensor of shape (N, C, h, w) or (N, C, d, h, w).
    """
    rank = input.dim() - 2
    how, outside = _SAMPLINGS.get(mode), _OUTSIDES.get(padding_mode)
    if how is None:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
            f"'bicubic', but got: '{mode}'"
        )
    if outside is None:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if rank not in (2, 3) or grid.dim() != input.dim() or grid.size(-1) != rank:
        raise RuntimeError(
            f"grid_sample: input {list(input.shape)} and grid {list(grid.shape)} do not match"
        )
    if how == 2 and rank != 2:
        raise RuntimeError("grid_sample: bicubic interpolation only supports 4D input")
    return ops._grid_sample(input, grid, rank, how, outside, bool(align_corners))
