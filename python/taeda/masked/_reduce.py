"""Reductions of the elements that a mask lets through."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda.masked._fill import broadcast_mask, converted, count, highest, lowest, with_fill

Dim = int | Sequence[int] | None


def _dims(input: Tensor, dim: Dim) -> list[int]:
    """The dimensions to reduce over: all where none are named."""
    if dim is None:
        return list(range(input.dim()))
    named = [dim] if isinstance(dim, int) else list(dim)
    for d in named:
        if not -max(input.dim(), 1) <= d < max(input.dim(), 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of "
                f"[{-max(input.dim(), 1)}, {max(input.dim(), 1) - 1}], but got {d})"
            )
    wrapped = [d % input.dim() if input.dim() else 0 for d in named]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim: some dimension appears multiple times in {tuple(named)}")
    if not input.dim():
        return []
    return wrapped or list(range(input.dim()))


def sum(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The sum; 0 of nothing. Integers and bools add up as int64."""
    x = with_fill("sum", converted(input, dtype), mask, 0)
    return x.sum(_dims(x, dim), keepdim=keepdim)


def prod(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The product; 1 of nothing. Integers and bools multiply as int64."""
    x = with_fill("prod", converted(input, dtype), mask, 1)
    if not x.is_floating_point() and not x.is_complex() and dtype is None:
        x = x.to(taeda.int64)
    for d in sorted(_dims(x, dim), reverse=True):
        x = x.prod(d, keepdim=keepdim)
    return x


def amax(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest element; the least value of the dtype of nothing."""
    x = converted(input, dtype)
    return with_fill("amax", x, mask, lowest("amax", x.dtype)).amax(_dims(x, dim), keepdim)


def amin(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The smallest element; the greatest value of the dtype of nothing."""
    x = converted(input, dtype)
    return with_fill("amin", x, mask, highest("amin", x.dtype)).amin(_dims(x, dim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the largest element; in the flattened tensor without ``dim``."""
    x = converted(input, dtype)
    return with_fill("argmax", x, mask, lowest("argmax", x.dtype)).argmax(dim, keepdim)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the smallest element; in the flattened tensor without ``dim``."""
    x = converted(input, dtype)
    return with_fill("argmin", x, mask, highest("argmin", x.dtype)).argmin(dim, keepdim)


def mean(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean; NaN of nothing.

    Raises:
        ValueError: the input is neither floating nor complex, and ``dtype`` does not make it so.
    """
    x = converted(input, dtype)
    if not x.is_floating_point() and not x.is_complex():
        raise ValueError(
            f"masked.mean(): input must be floating or complex to have a mean, got {x.dtype}"
        )
    dims = _dims(x, dim)
    total = with_fill("mean", x, mask, 0).sum(dims, keepdim=keepdim)
    return total / count("mean", x, dims, keepdim, mask).to(x.dtype)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The lower of the two middle elements along ``dim``; NaN of nothing.

    Raises:
        ValueError: a line of integers has no element at all.
    """
    x = converted(input, dtype)
    spread = broadcast_mask("median", x, mask)
    if x.is_floating_point():
        return with_fill("median", x, spread, math.nan).nanmedian(dim, keepdim=keepdim)[0]
    if spread is None:
        return x.median(dim, keepdim=keepdim)[0]
    if not bool(spread.any(dim).all()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    wide = with_fill("median", x.to(taeda.float64), spread, math.nan)
    return wide.nanmedian(dim, keepdim=keepdim)[0].to(x.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dim = None, *, keepdim: bool = False,
    dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The p-norm of order ``ord``; 0 of nothing, or infinity for a negative order."""
    x = converted(input, dtype)
    order = 2.0 if ord is None else float(ord)
    value = math.inf if order < 0 else 0.0
    filled = with_fill("norm", x, mask, value)
    return ops.linalg_vector_norm(filled, order, _dims(x, dim), keepdim)


def logsumexp(
    input: Tensor, dim: Dim = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The logarithm of the sum of exponentials; the least value of the dtype of nothing."""
    x = converted(input, dtype)
    least = -math.inf if x.is_complex() else lowest("logsumexp", x.dtype)
    filled = with_fill("logsumexp", x, mask, least)
    return ops.logsumexp(filled, _dims(x, dim), keepdim).to(x.dtype)


def var(
    input: Tensor, dim: Dim = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance: squared distances from the mean, over their number less ``correction``.

    ``correction`` is 1 by default; ``unbiased`` is its older name, True for 1 and False for 0. The
    result is NaN where that leaves nothing to divide by.
    """
    if unbiased is not None and correction is not None:
        raise RuntimeError("masked.var(): only one of unbiased and correction may be given")
    less = 1 if correction is None else correction
    if unbiased is not None:
        less = int(unbiased)
    x = converted(input, dtype)
    if x.dtype == taeda.bool:
        raise RuntimeError("masked.var(): a bool tensor has no variance")
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(taeda.get_default_dtype())
    dims = _dims(x, dim)
    number = count("var", x, dims, True, mask)
    centre = with_fill("var", x, mask, 0).sum(dims, keepdim=True) / number.to(x.dtype)
    away = with_fill("var", x - centre, mask, 0)
    total = (away * away.conj()).sum(dims, keepdim=True)
    result = total / (number - less).clamp_min(0).to(total.dtype)
    return result if keepdim else _without(result, dims)


def _without(result: Tensor, dims: builtins.list[int]) -> Tensor:
    return result.reshape([n for d, n in enumerate(result.shape) if d not in dims])


def std(
    input: Tensor, dim: Dim = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The square root of `var`."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()
