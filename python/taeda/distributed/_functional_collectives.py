"""What processes of a group do together, as functions that change nothing.

Packages take these from PyTorch's module of this name. Gradients pass through each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

from ._group import _known
from ._process_group import ProcessGroup
from ._types import ReduceOp
from .device_mesh import DeviceMesh
from .nn import functional

__all__ = [
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "wait_tensor",
]


def _group_of(group: Any) -> ProcessGroup:
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    return _known(group)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes combined, by ``"sum"``, ``"avg"``, ``"max"`` and the like."""
    return functional.all_reduce(self, getattr(ReduceOp, reduceOp.upper()), _group_of(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along a dimension."""
    return taeda.cat(list(functional.all_gather(self, _group_of(group))), gather_dim)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """The part for this process, along a dimension, of the tensors of all combined."""
    given = _group_of(group)
    if self.size(scatter_dim) % given.size():
        raise ValueError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of "
            f"group_size {given.size()}"
        )
    parts = self.chunk(given.size(), scatter_dim)
    op = getattr(ReduceOp, reduceOp.upper())
    return functional.reduce_scatter(parts[given.rank()], parts, op, given)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process ``src``."""
    return functional.broadcast(self, src, _group_of(group))


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """What all processes have sent this one of their tensors."""
    rows = sum(output_split_sizes) if output_split_sizes else self.size(0)
    output = self.new_empty((rows, *self.shape[1:]))
    return functional.all_to_all_single(
        output, self, output_split_sizes, input_split_sizes, _group_of(group)
    )


all_to_all_single_autograd = all_to_all_single
