"""Max pooling over windows at random positions."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor, ops
from taeda.nn.functional._conv import _each

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
]  # fmt: skip


def _pool(
    rank: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    name = f"fractional_max_pool{rank}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.dim() not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{name}: expected input with {rank + 1} or {rank + 2} dimensions, got {input.dim()}"
        )
    kernel = _each(kernel_size, rank)
    sizes = list(input.shape[-rank:])
    if output_size is None:
        single = isinstance(output_ratio, (int, float))
        ratio = (output_ratio,) * rank if single else tuple(output_ratio)
        if any(not 0 < r < 1 for r in ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1, got {ratio}")
        out = tuple(int(n * r) for n, r in zip(sizes, ratio, strict=True))
    else:
        out = _each(output_size, rank)
    if len(kernel) != rank or len(out) != rank:
        raise RuntimeError(f"{name}: kernel_size and output_size must be {rank} ints")
    if any(o < 1 or k < 1 or o + k - 1 > n for o, k, n in zip(out, kernel, sizes, strict=True)):
        raise RuntimeError(
            f"{name}: output {out} and kernel {kernel} do not fit an input of sizes {sizes}"
        )
    x = input if input.dim() == rank + 2 else input.unsqueeze(0)
    if samples is None:
        samples = ops.rand([x.size(0), x.size(1), rank], dtype=x.dtype, device=x.device)
    if samples.dim() != 3 or samples.size(0) < len(x) or samples.shape[1:] != (x.size(1), rank):
        raise RuntimeError(
            f"{name}: _random_samples must have shape {[x.size(0), x.size(1), rank]}, or more of "
            f"the first, got {list(samples.shape)}"
        )
    best, index = ops._fractional_max_pool(x, samples[: len(x)], kernel, out)
    if input.dim() == rank + 1:
        best, index = best.squeeze(0), index.squeeze(0)
    return best, index


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = True, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """`fractional_max_pool2d` with `return_indices` on by default."""
    best, index = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return (best, index) if return_indices else best


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of windows at random, increasing positions (Graham 2014).

    Args:
        input: of shape (N, C, H, W) or (C, H, W).
        kernel_size: the size of the windows.
        output_size: how many windows there are along each dimension; or else
        output_ratio: the same as a fraction of the input's size, between 0 and 1.
        return_indices: also return where in the flattened plane the maxima are.
        _random_samples: uniform numbers of shape (N, C, 2) that shift the windows.
    """
    return fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = True, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """`fractional_max_pool3d` with `return_indices` on by default."""
    best, index = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return (best, index) if return_indices else best


def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """`fractional_max_pool2d` for inputs (N, C, D, H, W) or (C, D, H, W)."""
    return fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
