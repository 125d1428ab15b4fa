"""New tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda._C import Tensor, dtype
from taeda.array_api._dtypes import common

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = int | Sequence[int]
Dtype = dtype | None


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj: Any, /, *, dtype: Dtype = None, device: Any = None, copy: Any = None) -> Tensor:
    """Return a tensor of numbers, sequences, arrays or buffers; shared where ``copy`` allows."""
    return taeda.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return another library's array as a tensor.

    Args:
        x: has ``__dlpack__``.
        device: where the result shall be; by default where the array is.
        copy: ``True`` for memory of its own, ``False`` to share it or raise ValueError.
    """
    return taeda.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *,
    dtype: Dtype = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Return ``start, start + step, ...`` before ``stop``; empty if that lies on the other side."""
    first, end = (0, start) if stop is None else (start, stop)
    if (end - first) * step < 0:
        end = first
    return taeda.arange(first, end, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *,
    dtype: Dtype = None, device: Any = None, endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """Return ``num`` evenly spaced values from ``start`` to ``stop``, which may be left out."""
    if endpoint:
        return taeda.linspace(start, stop, num, dtype=dtype, device=device)
    return taeda.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def eye(
    n_rows: int, n_cols: int | None = None, /, *,
    k: int = 0, dtype: Dtype = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """Return ones on the diagonal ``k`` (above the main one if positive), zeros elsewhere."""
    result = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    result.diagonal(k).fill_(1)
    return result


def empty(shape: Shape, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return a tensor whose values are whatever was in its memory."""
    return taeda.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return zeros."""
    return taeda.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return ones."""
    return taeda.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: complex, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return a tensor of one value; without ``dtype``, of the default dtype of its kind."""
    return taeda.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return ``empty`` of the shape, and unless given the dtype and device, of another tensor."""
    return taeda.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return zeros of the shape of another tensor."""
    return taeda.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return ones of the shape of another tensor."""
    return taeda.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: complex, *, dtype: Dtype = None, device: Any = None
) -> Tensor:
    """Return one value in the shape of another tensor."""
    return taeda.full_like(x, fill_value, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the lower triangles of the last two dimensions, up to the diagonal ``k``."""
    return taeda.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the upper triangles of the last two dimensions, from the diagonal ``k`` on."""
    return taeda.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of the points of a grid.

    Args:
        *arrays: the coordinates along each axis, vectors.
        indexing: "xy" swaps the first two dimensions of the results, "ij" does not.
    """
    if not arrays:
        return []
    return list(taeda.meshgrid(*common(*arrays), indexing=indexing))
