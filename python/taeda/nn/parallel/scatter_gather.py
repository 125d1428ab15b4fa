"""Inputs in pieces, one for each device, and outputs of devices together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a tuple with names for its items."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields") and hasattr(obj, "_asdict")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device the inputs with its piece of every tensor; all else is repeated.

    Args:
        inputs: tensors, and tuples, lists and dictionaries of them.
        target_gpus: the devices, or the indices of GPUs.
        dim: the dimension to cut along.

    Returns:
        A tuple or list with as many items as there are pieces.

    >>> from taeda.nn.parallel.scatter_gather import scatter
    >>> scatter((taeda.arange(3), "x"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'x'), (tensor([2]), 'x')]
    """
    devices = [taeda.device(d) if isinstance(d, int) else d for d in target_gpus]

    def pieces(obj: Any) -> Any:
        if isinstance(obj, Tensor):
            parts = obj.chunk(len(devices), dim)
            return tuple(p.to(d) for p, d in zip(parts, devices, strict=False))
        if isinstance(obj, tuple) and obj:
            rows = zip(*map(pieces, obj), strict=False)
            return [type(obj)(*row) for row in rows] if is_namedtuple(obj) else list(rows)
        if isinstance(obj, list) and obj:
            return [list(row) for row in zip(*map(pieces, obj), strict=False)]
        if isinstance(obj, dict) and obj:
            return [type(obj)(row) for row in zip(*map(pieces, obj.items()), strict=False)]
        return [obj for _ in devices]

    return pieces(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """``scatter`` of positional and keyword arguments, as many of one as of the other."""
    places = list(scatter(inputs, target_gpus, dim)) if inputs else []
    names = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(places), len(names))
    places += [()] * (count - len(places))
    names += [{}] * (count - len(names))
    return tuple(places), tuple(names)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """One output of those of all devices: their tensors one after another on one device.

    Args:
        outputs: one per device, all of one structure; tensors without dimensions become one with
            one dimension.
        target_device: where the result is, or the index of a GPU; -1 is the CPU.
        dim: the dimension to join along.
    """
    device = "cpu" if target_device == -1 else target_device
    device = taeda.device(device) if isinstance(device, int) else device

    def join(items: Sequence[Any]) -> Any:
        first = items[0]
        if isinstance(first, Tensor):
            tensors = [t.to(device) for t in items]
            if all(t.ndim == 0 for t in tensors):
                return taeda.stack(tensors)
            return taeda.cat(tensors, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(item) == len(first) for item in items):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([item[key] for item in items])) for key in first)
        if is_namedtuple(first):
            return type(first)._make(map(join, zip(*items, strict=True)))
        return type(first)(map(join, zip(*items, strict=True)))

    return join(list(outputs))
