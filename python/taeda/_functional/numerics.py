"""Numerical functions that are written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taeda import _C
from taeda._C import Tensor, ops

__all__ = [
    "gradient",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "histogramdd",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
]


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Estimate the derivatives of sampled values by central differences, of second order inside.

    Args:
        input: the samples.
        spacing: the distance of neighbours (1); for each dimension its own, or a vector of
            coordinates.
        dim: the dimension or dimensions to differentiate along; by default all.
        edge_order: 1 or 2, the order of the differences at both ends.

    Returns:
        one tensor of the input's shape for each dimension.

    >>> taeda.gradient(taeda.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    x = input
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(): edge_order must be 1 or 2, got {edge_order}")
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if len({d % max(x.dim(), 1) for d in dims}) != len(dims):
        raise RuntimeError(f"gradient(): a dimension appears multiple times in {dims}")
    single = spacing is None or isinstance(spacing, (int, float, complex))
    if not single and isinstance(spacing, Tensor):
        raise RuntimeError(
            "gradient(): coordinates must come in a tuple, one vector for each dimension"
        )
    steps = [1.0 if spacing is None else spacing] * len(dims) if single else list(spacing)
    if len(steps) != len(dims):
        raise RuntimeError(
            f"gradient(): expected spacing for {len(dims)} dimensions, got {len(steps)}"
        )
    for d in dims:
        if x.size(d) < edge_order + 1:
            raise RuntimeError(
                f"gradient(): each dimension must have at least edge_order + 1 = {edge_order + 1} "
                f"elements, but dimension {d} has {x.size(d)}"
            )
    return tuple(_slope(x, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _slope(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    """Differences along one dimension. ``step``: a number or the coordinates."""
    n = x.size(dim)
    if not isinstance(step, Tensor):
        return _even_slope(x, dim, step, edge_order)
    if step.dim() != 1 or step.numel() != n:
        raise RuntimeError(
            f"gradient(): expected {n} coordinates along dimension {dim}, got shape "
            f"{list(step.shape)}"
        )
    shape = [1] * x.dim()
    shape[dim] = n - 1
    gaps = (step[1:] - step[:-1]).reshape(shape)

    def at(t: Any, start: int, count: int) -> Any:
        return t.narrow(dim, start % t.size(dim), count)

    def three(start: int, before: Any, after: Any, weights: Any) -> Any:
        a, b, c = weights(before, after)
        count = before.size(dim)
        return a * at(x, start, count) + b * at(x, start + 1, count) + c * at(x, start + 2, count)

    parts = []
    if edge_order == 2:
        parts.append(three(0, at(gaps, 0, 1), at(gaps, 1, 1), _left_weights))
    else:
        parts.append((at(x, 1, 1) - at(x, 0, 1)) / at(gaps, 0, 1))
    if n > 2:
        parts.append(three(0, at(gaps, 0, n - 2), at(gaps, 1, n - 2), _middle_weights))
    if edge_order == 2:
        parts.append(three(n - 3, at(gaps, -2, 1), at(gaps, -1, 1), _right_weights))
    else:
        parts.append((at(x, -1, 1) - at(x, -2, 1)) / at(gaps, -1, 1))
    return ops.cat(parts, dim)


def _even_slope(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    """`_slope` for equal distances.

    The point in the middle has no weight at all: it may be infinite.
    """
    n = x.size(dim)

    def at(start: int, count: int = 1) -> Any:
        return x.narrow(dim, start % n, count)

    if edge_order == 2:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / step
        last = (0.5 * at(-3) - 2 * at(-2) + 1.5 * at(-1)) / step
    else:
        first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
    middle = (at(2, n - 2) - at(0, n - 2)) / step / 2 if n > 2 else None
    return ops.cat([part for part in (first, middle, last) if part is not None], dim)


def _left_weights(h: Any, k: Any) -> tuple[Any, Any, Any]:
    """The derivative at the first of three points with distances h and k, from a parabola."""
    return -(2 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k))


def _middle_weights(h: Any, k: Any) -> tuple[Any, Any, Any]:
    return -k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))


def _right_weights(h: Any, k: Any) -> tuple[Any, Any, Any]:
    return k / (h * (h + k)), -(h + k) / (h * k), (2 * k + h) / (k * (h + k))


class HistogramDD(NamedTuple):
    """What `histogramdd` returns."""

    hist: Tensor
    bin_edges: list[Tensor]


HistogramDD.__name__ = "histogramdd"  # as it is printed


def histogramdd(
    input: Tensor, bins: Any, range: Sequence[float] | None = None, weight: Any = None,
    density: bool = False,
) -> HistogramDD:  # fmt: skip
    """Count points in the cells of a grid.

    Args:
        input: points of D coordinates in the last dimension.
        bins: the number of cells along each coordinate (one for all, or D), or D vectors of edges.
        range: the least and greatest edge of each coordinate; by default those of the data.
        weight: how much each point counts.
        density: make the integral 1.

    Returns:
        ``hist``, of one dimension for each coordinate, and ``bin_edges``, the list of their edges.
    """
    points = input
    counts: list[int] = []
    edges: list[Any] = []
    if isinstance(bins, int):
        counts = [bins] * (points.size(-1) if points.dim() else 1)
    elif bins and isinstance(bins[0], Tensor):
        edges = list(bins)
    else:
        counts = list(bins)
    span = None if range is None else [*map(float, range)]
    hist, *found = ops._histogramdd(points, counts, edges, span, weight, density)
    return HistogramDD(hist, found)


def _grid_sampler(
    name: str, dims: int, input: Tensor, grid: Tensor, mode: int, padding: int, corners: bool
) -> Tensor:
    from taeda.nn.functional import grid_sample

    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if input.dim() != dims or not 0 <= mode < 3 or not 0 <= padding < 3:
        raise RuntimeError(
            f"{name}(): expected {dims}D input and modes from 0 to 2, got {input.dim()}D, "
            f"interpolation_mode {mode} and padding_mode {padding}"
        )
    return grid_sample(input, grid, modes[mode], paddings[padding], corners)


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` of 4D inputs, with numbers for the modes."""
    return _grid_sampler(
        "grid_sampler_2d", 4, input, grid, interpolation_mode, padding_mode, align_corners
    )


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` of 5D inputs, with numbers for the modes."""
    return _grid_sampler(
        "grid_sampler_3d", 5, input, grid, interpolation_mode, padding_mode, align_corners
    )


# ---- normalisations that give their statistics, too ---------------------------------------------


def _statistics(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor]:
    """Return the mean over some dimensions, and 1 over the deviation."""
    wide = x.float() if x.dtype in (_C.float16, _C.bfloat16) else x
    var, mean = ops.var_mean(wide, dims, correction=0, keepdim=True)
    return mean.to(x.dtype), (var + eps).rsqrt().to(x.dtype)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``layer_norm``, and the mean and 1 over the deviation that it has used.

    Args:
        input: (*, normalized_shape).
        normalized_shape: the last sizes, over which to normalise.
        weight, bias: of that shape, or ``None``.
        eps: added to the variance.

    >>> out, mean, rstd = taeda.native_layer_norm(taeda.ones(2, 3), [3], None, None, 1e-5)
    >>> mean
    tensor([[1.],
            [1.]])
    """
    out = ops.layer_norm(input, normalized_shape, weight, bias, eps)
    return out, *_statistics(input.detach(), list(range(-len(normalized_shape), 0)), eps)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``group_norm``, and the mean and 1 over the deviation of each group, (N, group).

    Args:
        input: of N * C * HxW elements, the first two dimensions being (N, C).
        weight, bias: of C elements, or ``None``.
        N, C, HxW: the sizes, of the other dimensions taken together.
        group: how many groups the channels form.
        eps: added to the variance.
    """
    if input.numel() != N * C * HxW or C % max(group, 1) != 0 or group < 1:
        raise RuntimeError(
            f"native_group_norm(): shape {list(input.shape)} is not N * C * HxW = {N} * {C} * "
            f"{HxW} elements, or C is not a multiple of group = {group}"
        )
    out = ops.group_norm(input, group, weight, bias, eps)
    mean, rstd = _statistics(input.reshape(N, group, C // group * HxW), [2], eps)
    return out, mean.squeeze(2), rstd.squeeze(2)


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``batch_norm``, and the batch's mean and 1 over its deviation.

    Args:
        input: (N, C, *).
        weight, bias: of C elements, or ``None``.
        running_mean, running_var: of C elements, or ``None``; updated in training.
        training: normalise by the batch's statistics. Otherwise those returned are empty.
        momentum: share of the batch in the update.
        eps: added to the variance.
        out: three tensors to write the results to.
    """
    if out is not None and len(out) != 3:
        raise TypeError("native_batch_norm(): argument 'out' must be a tuple of 3 Tensors")
    mean = rstd = input.new_empty(0)
    if training:
        mean, rstd = _statistics(input.detach(), [0, *range(2, input.dim())], eps)
    y = ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    results = (y, mean.flatten(), rstd.flatten())
    if out is None:
        return results
    y, mean, rstd = (ops.alias_copy(r, out=o) for r, o in zip(results, out, strict=True))
    return y, mean, rstd
