"""Functions that move, join and choose elements."""

from __future__ import annotations

from collections.abc import Sequence

import taeda
from taeda._C import Tensor
from taeda.array_api._dtypes import common

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take", "take_along_axis",
    "tile", "unstack",
]  # fmt: skip

Axes = int | tuple[int, ...]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return views of the tensors in the shape that all broadcast to."""
    return list(taeda.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return a view in which dimensions of size 1 are repeated to fill ``shape``."""
    return taeda.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along ``axis``; with ``None``, all their elements to one vector."""
    parts = common(*arrays)
    if axis is None:
        return taeda.concat([x.flatten() for x in parts])
    return taeda.concat(parts, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new dimension."""
    return taeda.stack(common(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along a dimension."""
    return taeda.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Return a view with a dimension of size 1 more; IndexError unless ``axis`` is in range."""
    return taeda.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """Return a view without some dimensions; ValueError unless they have size 1."""
    dims = (axis,) if isinstance(axis, int) else axis
    for d in dims:
        if x.size(d) != 1:
            raise ValueError(f"squeeze(): dimension {d} has size {x.size(d)}, not 1")
    return taeda.squeeze(x, dims)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view with the dimensions in another order."""
    return taeda.permute(x, axes)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Return a view with some dimensions moved, the others in order."""
    return taeda.moveaxis(x, source, destination)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape.

    Args:
        x: the tensor.
        shape: one size may be -1, what is left over.
        copy: ``True`` for a copy, ``False`` for a view or ValueError; by default as needed.
    """
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape(): {error}") from error
    return taeda.reshape(x.clone() if copy else x, shape)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Reverse the order of the elements along some dimensions, by default all."""
    if axis is None:
        return taeda.flip(x, tuple(range(x.dim())))
    return taeda.flip(x, (axis,) if isinstance(axis, int) else axis)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """Shift elements cyclically along dimensions.

    Args:
        x: the tensor.
        shift: by how many places, for each of ``axis``.
        axis: the dimensions; by default the tensor is taken as one row.
    """
    if axis is None:
        return taeda.roll(x, shift)
    shifts = (shift,) if isinstance(shift, int) else shift
    dims = (axis,) if isinstance(axis, int) else axis
    if len(shifts) == 1:
        shifts = shifts * len(dims)
    return taeda.roll(x, shifts, dims)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element along ``axis``, or of the flattened tensor.

    Args:
        x: the tensor.
        repeats: how often; a tensor says it for each element along the dimension.
        axis: the dimension.
    """
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats)
    return taeda.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the whole tensor along each dimension."""
    return taeda.tile(x, repetitions)


def _counted_from_start(indices: Tensor, size: int) -> Tensor:
    return taeda.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the slices of ``x`` at the given indices of a dimension.

    Args:
        x: the tensor.
        indices: integers; their shape takes the dimension's place.
        axis: the dimension, which only a vector may leave out.
    """
    if axis is None:
        if x.dim() != 1:
            raise ValueError(f"take(): axis is required for a tensor of {x.dim()} dimensions")
        axis = 0
    axis = axis % x.dim() if -x.dim() <= axis < x.dim() else axis
    places = _counted_from_start(indices.long(), x.size(axis))
    chosen = taeda.index_select(x, axis, places.flatten())
    return chosen.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements at ``indices`` along a dimension; the others broadcast."""
    places = _counted_from_start(indices.long(), x.size(axis))
    return taeda.take_along_dim(x, places, axis)
