"""Sums, orders and sets of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda._C import Tensor, dtype
from taeda.array_api._dtypes import common

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "max", "mean", "min", "nonzero", "prod", "searchsorted", "sort",
    "std", "sum", "unique_all", "unique_counts", "unique_inverse", "unique_values", "var", "where",
]  # fmt: skip

Axis = int | tuple[int, ...] | None
Dtype = dtype | None


# ---- reductions ----------------------------------------------------------------------------------


def _over(x: Tensor, axis: Axis) -> tuple[Tensor, tuple[int, ...]]:
    """Return the tensor and dimensions to reduce; for no dimensions, add one of size 1."""
    if axis is None:
        return x, tuple(range(x.dim()))
    dims = (axis,) if isinstance(axis, int) else axis
    return (x, dims) if dims else (x.unsqueeze(-1), (-1,))


def _keeps(x: Tensor, axis: Axis, keepdims: bool) -> bool:
    # Always remove the dimension that `_over` added for an empty tuple.
    return keepdims and axis != ()


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Dtype = None, keepdims: bool = False) -> Tensor:
    """Sum over some dimensions, by default all; small integers are added up as int64."""
    values, dims = _over(x, axis)
    return taeda.sum(values, dims, _keeps(x, axis, keepdims), dtype=dtype)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Dtype = None, keepdims: bool = False) -> Tensor:
    """Multiply over some dimensions, by default all; small integers are multiplied as int64."""
    values, dims = _over(x, axis)
    if not dims:
        return taeda.prod(values, dtype=dtype)
    for d in sorted((d % values.dim() for d in dims), reverse=True):
        values = taeda.prod(values, d, _keeps(x, axis, keepdims), dtype=dtype)
    return values


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean over some dimensions, by default all."""
    values, dims = _over(x, axis)
    return taeda.mean(values, dims, _keeps(x, axis, keepdims))


def var(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance: the sum of squared deviations, divided by ``n - correction``."""
    values, dims = _over(x, axis)
    keepdim = _keeps(x, axis, keepdims)
    return taeda.var(values, dims, correction=correction, keepdim=keepdim)


def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the square root of the variance."""
    values, dims = _over(x, axis)
    keepdim = _keeps(x, axis, keepdims)
    return taeda.std(values, dims, correction=correction, keepdim=keepdim)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over some dimensions, by default all; a NaN is the largest."""
    values, dims = _over(x, axis)
    return taeda.amax(values, dims, _keeps(x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over some dimensions, by default all; a NaN is the smallest."""
    values, dims = _over(x, axis)
    return taeda.amin(values, dims, _keeps(x, axis, keepdims))


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are nonzero, over some dimensions or by default all."""
    values, dims = _over(x.bool(), axis)
    return taeda.all(values, dims, _keeps(x, axis, keepdims)) if dims else values.clone()


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element is nonzero, over some dimensions or by default all."""
    values, dims = _over(x.bool(), axis)
    return taeda.any(values, dims, _keeps(x, axis, keepdims)) if dims else values.clone()


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not zero."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the largest element is: along ``axis``, or in the flattened tensor."""
    return taeda.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the smallest element is: along ``axis``, or in the flattened tensor."""
    return taeda.argmin(x, axis, keepdims)


# ---- along one dimension -------------------------------------------------------------------------


def _cumulative(
    function: Callable[..., Tensor], first: int, x: Tensor, axis: int | None, dtype: Dtype,
    include_initial: bool,
) -> Tensor:  # fmt: skip
    if axis is None:
        if x.dim() != 1:
            raise ValueError(
                f"{function.__name__}: axis is required for a tensor of {x.dim()} dimensions"
            )
        axis = 0
    result = function(x, axis, dtype=dtype)
    if include_initial:
        sizes = list(result.shape)
        sizes[axis] = 1
        result = taeda.concat([result.new_full(sizes, first), result], axis)
    return result


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False
) -> Tensor:
    """Return the sums of the first elements along a dimension.

    Args:
        x: the tensor.
        axis: the dimension, which only a vector may leave out.
        dtype: of the sums; by default that of ``sum``.
        include_initial: begin with the sum of no elements.
    """
    return _cumulative(taeda.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False
) -> Tensor:
    """Return the products of the first elements along a dimension: see ``cumulative_sum``."""
    return _cumulative(taeda.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1,
    prepend: Tensor | None = None, append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the differences of neighbours along a dimension, ``n`` times over."""
    return taeda.diff(x, n, axis, prepend, append)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in order along a dimension."""
    return taeda.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the indices that sort ``x``; equal elements keep their order if ``stable``."""
    return taeda.argsort(x, dim=axis, descending=descending, stable=stable)


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return where each element of ``x2`` goes into the vector ``x1``, which stays in order.

    Args:
        x1: in ascending order, unless there is a ``sorter``.
        x2: the values to place.
        side: "left" or "right" of equal elements.
        sorter: indices that bring ``x1`` in order.
    """
    ordered, values = common(x1, x2)
    return taeda.searchsorted(ordered, values, side=side, sorter=sorter)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, one vector for each dimension."""
    if x.dim() == 0:
        raise ValueError("nonzero(): a tensor without dimensions has no indices")
    return taeda.nonzero(x, as_tuple=True)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Return the elements of ``x1`` where ``condition`` holds, else those of ``x2``."""
    one, other = common(x1, x2)
    return taeda.where(condition, one, other)


# ---- sets ----------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """The distinct values, where each comes first, which each element is, how often each comes."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct values and how often each comes."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct values and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def _order(x: Tensor) -> Tensor:
    """Return the stable order of a vector; complex numbers by their real part first."""
    if not x.is_complex():
        return taeda.argsort(x, stable=True)
    order = taeda.argsort(x.imag, stable=True)
    return order[taeda.argsort(x.real[order], stable=True)]


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct values in ascending order and all that ``UniqueAll`` tells of them.

    Every NaN is a value of its own.

    >>> taeda.array_api.unique_all(taeda.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    flat = x.flatten()
    order = _order(flat)
    ordered = flat[order]
    first = taeda.ones_like(ordered, dtype=taeda.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = taeda.nonzero(first, as_tuple=True)[0]
    inverse = taeda.empty_like(order)
    inverse[order] = taeda.cumsum(first, 0) - 1
    counts = taeda.diff(starts, append=starts.new_full((1,), flat.numel()))
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct values in ascending order, and how often each comes."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct values in ascending order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct values in ascending order."""
    return unique_all(x).values
