"""What processes of a group do together, with gradients: each returns what it has among one.

Tensors to be written to are not: results are copies of what is sent, with its gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor
from taeda.distributed._collectives import Op, _check_list, _check_op, _check_root
from taeda.distributed._group import _known
from taeda.distributed._types import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process ``src``."""
    _known(group)
    _check_root("broadcast", src, None)
    return tensor.clone()


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in process ``dst``."""
    _known(group)
    _check_root("gather", dst, None)
    return (tensor.clone(),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor for this process, of those of process ``src``."""
    _known(group)
    _check_root("scatter", src, None)
    _check_list(tensors, "tensors", "scatter")
    return tensors[0].clone()


def reduce(tensor: Tensor, dst: int, op: Op = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined, in process ``dst``."""
    _known(group)
    _check_root("reduce", dst, None)
    _check_op("reduce", op, tensor)
    return tensor.clone()


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Op = ReduceOp.SUM,
    group: Any = None,
) -> Tensor:
    """The part for this process of the lists of all processes, combined."""
    _known(group)
    _check_list(input_list, "input_list", "reduce_scatter")
    _check_op("reduce_scatter", op, *input_list)
    return input_list[0].clone()


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    _known(group)
    return (tensor.clone(),)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What all processes have sent this one of their lists."""
    _known(group)
    _check_list(output_tensor_list, "output_tensor_list", "all_to_all")
    _check_list(input_tensor_list, "input_tensor_list", "all_to_all")
    return (input_tensor_list[0].clone(),)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """What all processes have sent this one of their tensors."""
    _known(group)
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and sum(sizes) != tensor.size(0):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return input.clone()


def all_reduce(tensor: Tensor, op: Op = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined."""
    _known(group)
    _check_op("all_reduce", op, tensor)
    return tensor.clone()
