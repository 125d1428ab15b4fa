"""What processes of a group do together, with gradients.

The gradient of each is what processes do together in the other direction, so that all of them must
call backward. Tensors to be written to are not: results are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.distributed import _collectives as plain
from taeda.distributed._arguments import Op, check_list, check_op, root_of
from taeda.distributed._group import _known
from taeda.distributed._process_group import ProcessGroup
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


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        out = tensor.clone()
        plain.broadcast(out, group=group, group_src=root)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = grad.clone()
        plain.reduce(out, group=ctx.group, group_dst=ctx.root)
        return (out if ctx.group.rank() == ctx.root else taeda.zeros_like(out)), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, op: Op, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        out = tensor.clone()
        plain.reduce(out, op=op, group=group, group_dst=root)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = grad.clone()
        plain.broadcast(out, group=ctx.group, group_src=ctx.root)
        return out, None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: Op, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        plain.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = grad.clone()
        plain.all_reduce(out, ctx.op, ctx.group)
        return out, None, None


class _AllToAll(Function):
    """Sends parts, each of a size of its own; the gradients go back."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, sizes: Sequence[Any], *parts: Tensor) -> Any:
        ctx.group, ctx.sizes = group, [part.shape for part in parts]
        out = [parts[0].new_empty(size) for size in sizes]
        plain.all_to_all(out, [part.contiguous() for part in parts], group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        out = [grads[0].new_empty(size) for size in ctx.sizes]
        plain.all_to_all(out, [grad.contiguous() for grad in grads], ctx.group)
        return None, None, *out


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: ProcessGroup) -> Any:
        ctx.group = group
        out = [taeda.empty_like(tensor) for _ in range(group.size())]
        plain.all_gather(out, tensor.contiguous(), group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        out = taeda.empty_like(grads[0])
        plain.reduce_scatter(out, [grad.contiguous() for grad in grads], group=ctx.group)
        return out, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, op: Op, *parts: Tensor) -> Tensor:
        ctx.group = group
        out = taeda.empty_like(parts[group.rank()])
        plain.reduce_scatter(out, [part.contiguous() for part in parts], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = [taeda.empty_like(grad) for _ in range(ctx.group.size())]
        plain.all_gather(out, grad.contiguous(), ctx.group)
        return None, None, *out


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, group: ProcessGroup) -> Any:
        ctx.root, ctx.group = root, group
        out = [taeda.zeros_like(tensor) for _ in range(group.size())]
        here = group.rank() == root
        plain.gather(tensor.contiguous(), out if here else None, group=group, group_dst=root)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        out = taeda.empty_like(grads[0])
        given = [grad.contiguous() for grad in grads]
        here = ctx.group.rank() == ctx.root
        plain.scatter(out, given if here else None, group=ctx.group, group_src=ctx.root)
        return out, None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, root: int, group: ProcessGroup, *parts: Tensor) -> Tensor:
        ctx.root, ctx.group = root, group
        out = taeda.empty_like(parts[0])
        given = [part.contiguous() for part in parts]
        here = group.rank() == root
        plain.scatter(out, given if here else None, group=group, group_src=root)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = [taeda.zeros_like(grad) for _ in range(ctx.group.size())]
        here = ctx.group.rank() == ctx.root
        plain.gather(grad.contiguous(), out if here else None, group=ctx.group, group_dst=ctx.root)
        return None, None, *out


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process ``src``, which gets the sum of all gradients."""
    given = _known(group)
    return _Broadcast.apply(tensor, root_of("broadcast", given, src, None, False), given)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in process ``dst``; zeros in others."""
    given = _known(group)
    return _Gather.apply(tensor, root_of("gather", given, dst, None, False), given)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor for this process, of those of process ``src``.

    Args:
        tensors: one for each process; in processes other than ``src`` their shapes alone count.
        src: whose are sent.
        group: the processes, all by default.
    """
    given = _known(group)
    root = root_of("scatter", given, src, None, False)
    check_list(tensors, "tensors", "scatter", given.size())
    return _Scatter.apply(root, given, *tensors)


def reduce(tensor: Tensor, dst: int, op: Op = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined, in process ``dst``; their own in others."""
    given = _known(group)
    root = root_of("reduce", given, dst, None, False)
    check_op("reduce", op, tensor)
    return _Reduce.apply(tensor, root, op, given)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Op = ReduceOp.SUM,
    group: Any = None,
) -> Tensor:
    """The part for this process of the lists of all processes, combined."""
    given = _known(group)
    check_list(input_list, "input_list", "reduce_scatter", given.size())
    check_op("reduce_scatter", op, *input_list)
    return _ReduceScatter.apply(given, op, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return _AllGather.apply(tensor, _known(group))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What all processes have sent this one of their lists.

    Args:
        output_tensor_list: tensors of the shapes of what is received.
        input_tensor_list: what is sent, in the order of ranks.
        group: the processes, all by default.
    """
    given = _known(group)
    check_list(output_tensor_list, "output_tensor_list", "all_to_all", given.size())
    check_list(input_tensor_list, "input_tensor_list", "all_to_all", given.size())
    sizes = [output.shape for output in output_tensor_list]
    return _AllToAll.apply(given, sizes, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """What all processes have sent this one of their tensors.

    Args:
        output: a tensor of the shape of what is received.
        input: what is sent; parts lie along its first dimension.
        output_split_sizes: the sizes of the parts along that dimension; equal by default.
        input_split_sizes: likewise.
        group: the processes, all by default.
    """
    given = _known(group)
    counts = []
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        rows, size = tensor.size(0), given.size()
        if (sizes and sum(sizes) != rows) or (not sizes and rows % size):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        counts.append(list(sizes) if sizes else [rows // size] * size)
    shapes = [(count, *output.shape[1:]) for count in counts[0]]
    return taeda.cat(list(_AllToAll.apply(given, shapes, *input.split(counts[1]))))


def all_reduce(tensor: Tensor, op: Op = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined."""
    given = _known(group)
    check_op("all_reduce", op, tensor)
    return _AllReduce.apply(tensor, op, given)
