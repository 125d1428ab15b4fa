"""Where the part of a process lies in a tensor; one process has all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins."""
    return tuple(global_shape), (0,) * len(global_shape)
