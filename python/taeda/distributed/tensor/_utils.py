"""Where the part of a process lies in a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._redistribute import local_shape

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins."""
    return local_shape(global_shape, mesh, placements)
