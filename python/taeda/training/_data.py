"""What a trainer is given to train on, as batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.utils._pytree import tree_flatten, tree_leaves

__all__ = ["add_up", "as_loader", "inputs_and_target", "joined", "means", "size_of"]


def as_loader(data: Any, y: Any, batch_size: int, shuffle: bool) -> Iterable[Any]:
    """Batches: of tensors or arrays, or as they come from a loader or another iterable.

    Raises:
        TypeError: ``data`` is not one of these, or targets were given beside a loader.
    """
    from taeda.utils.data import DataLoader, Dataset, TensorDataset

    if isinstance(data, Tensor) or hasattr(data, "__array__"):
        tensors = [taeda.as_tensor(part) for part in (data, y) if part is not None]
        return DataLoader(TensorDataset(*tensors), batch_size, shuffle=shuffle)
    if y is not None:
        raise TypeError(
            f"Trainer: targets go with a tensor or an array of inputs; a {type(data).__name__} "
            "gives inputs and targets together"
        )
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle=shuffle)
    if not isinstance(data, Iterable):
        raise TypeError(
            "Trainer: expected a tensor, an array, a Dataset, a DataLoader or another iterable of "
            f"batches, got {type(data).__name__}"
        )
    return data


def inputs_and_target(batch: Any) -> tuple[tuple[Any, ...], Any]:
    """The model's arguments, and the target: the last of several parts, or None."""
    if isinstance(batch, (tuple, list)) and batch:
        return (tuple(batch[:-1]), batch[-1]) if len(batch) > 1 else ((batch[0],), None)
    return (batch,), None


def size_of(batch: Any) -> int:
    """How many samples a batch has."""
    for leaf in tree_leaves(batch):
        if isinstance(leaf, Tensor) and leaf.dim():
            return leaf.size(0)
    return 1


def joined(outputs: list[Any]) -> Any:
    """The outputs for several batches, tensor by tensor, as for one."""
    if not outputs:
        raise ValueError("Trainer.predict: there were no batches")
    pieces = [tree_flatten(output)[0] for output in outputs]
    tree = tree_flatten(outputs[0])[1]
    return tree.unflatten(
        taeda.cat(parts) if isinstance(parts[0], Tensor) and parts[0].dim() else list(parts)
        for parts in (list(column) for column in zip(*pieces, strict=True))
    )


def add_up(sums: dict[str, float], values: dict[str, float], size: int) -> None:
    """Add the values of a batch of this size to the sums from which ``means`` are computed."""
    sums["size"] = sums.get("size", 0) + size
    for name, value in values.items():
        sums[name] = sums.get(name, 0.0) + value * size


def means(sums: dict[str, float]) -> dict[str, float]:
    """The values' means over all samples."""
    return {name: value / sums["size"] for name, value in sums.items() if name != "size"}
