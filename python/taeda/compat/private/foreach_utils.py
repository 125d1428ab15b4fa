"""Stands for ``torch.utils._foreach_utils``: lists of tensors, sorted by device and dtype."""

from __future__ import annotations

from typing import Any

__all__ = ["_group_tensors_by_device_and_dtype"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Split lists of the same length by the device and dtype of the first list's tensors.

    Args:
        tensorlistlist: the lists; those after the first may hold None.
        with_indices: also say at which places the tensors of each group were.

    Returns:
        By (device, dtype), the parts of the lists and the places.

    Raises:
        RuntimeError: the first list is empty, or lengths differ.
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("_group_tensors_by_device_and_dtype: the first list must not be empty")
    if len({len(tensors) for tensors in tensorlistlist}) != 1:
        raise RuntimeError("_group_tensors_by_device_and_dtype: the lists differ in length")
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for i, row in enumerate(zip(*tensorlistlist, strict=True)):
        key = (row[0].device, row[0].dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in row], []))
        for part, tensor in zip(lists, row, strict=True):
            part.append(tensor)
        if with_indices:
            indices.append(i)
    return groups
