"""What processes of a group do together, as functions that change nothing: of one process.

Packages take these from PyTorch's module of this name. Each returns what it has among one, through
which gradients pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor

__all__ = [
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "wait_tensor",
]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes combined."""
    return self.clone()


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along a dimension."""
    return self.clone()


def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """The part for this process of the tensors of all, combined."""
    return self.clone()


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process ``src``."""
    return self.clone()


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """What all processes have sent this one of their tensors."""
    return self.clone()


all_to_all_single_autograd = all_to_all_single
