"""What processes of a group do together, where there is one: its result is what it gives.

Where ``async_op`` is set a `Work` is returned, which has ended, and otherwise None.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from taeda import Tensor
from taeda.futures import Future

from ._group import _is_outside
from ._types import ReduceOp, _RedOpType

__all__ = [
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "supports_complex",
]

Op: TypeAlias = "_RedOpType | ReduceOp"
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


class Work:
    """An operation of a group, which has ended."""

    def __init__(self, result: list[Tensor] | None = None) -> None:
        self._result = [] if result is None else result

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end: True."""
        return True

    def synchronize(self) -> None:
        """Wait for the end."""

    def is_completed(self) -> bool:
        """Whether it has ended: yes."""
        return True

    def is_success(self) -> bool:
        """Whether nothing went wrong: yes."""
        return True

    def exception(self) -> None:
        """The error that ended it: none."""

    def result(self) -> list[Tensor]:
        """The tensors that it has written."""
        return self._result

    def get_future(self) -> Future[list[Tensor]]:
        """A future with the result."""
        future: Future[list[Tensor]] = Future()
        future.set_result(self._result)
        return future


def _done(async_op: bool, *written: Tensor) -> Work | None:
    return Work(list(written)) if async_op else None


def _check(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type Tensor, got "
            f"{type(value).__name__}"
        )


def _check_list(values: Any, name: str, function: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[Tensor]"
        )
    if len(values) != 1:
        raise RuntimeError(
            f"{function}: {name} must have one tensor for each process of the group, which is 1, "
            f"got {len(values)}"
        )


def _check_root(function: str, rank: int | None, group_rank: int | None) -> None:
    if rank is not None and group_rank is not None:
        raise ValueError(f"{function}: a rank is given twice, in the group and among all processes")
    root = rank if rank is not None else group_rank
    if root not in (None, 0):
        raise RuntimeError(f"{function}: invalid root rank: {root}")


def _check_op(function: str, op: Op, *tensors: Tensor) -> None:
    for t in tensors:
        if t.is_complex() and not supports_complex(op):
            raise ValueError(f"{function} does not support {op} on complex tensors")
        if op in _BITS and (t.is_floating_point() or t.is_complex()):
            raise RuntimeError(f"Cannot use {op} with non-integral dtype")


def _write(function: str, output: Tensor, input: Tensor) -> Tensor:
    if output.dtype != input.dtype:
        raise ValueError(
            f"Invalid usage of tensors with different dtypes: {output.dtype} and {input.dtype}"
        )
    if output.numel() != input.numel():
        raise RuntimeError(
            f"{function}: invalid tensor size (expected {tuple(input.shape)}, got "
            f"{tuple(output.shape)})"
        )
    if output is not input:
        output.detach().copy_(input.detach().reshape(output.shape))
    return output


def supports_complex(reduceOp: Op) -> bool:
    """Whether complex numbers can be combined so."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, *_BITS)


def all_reduce(
    tensor: Tensor, op: Op = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor of each process in all of them: it stays as it is.

    Args:
        tensor: read and written.
        op: how to combine.
        group: the processes, all by default.
        async_op: return a `Work`.

    Raises:
        ValueError: there is no group; or complex numbers cannot be combined so.
    """
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_op("all_reduce", op, tensor)
    return _done(async_op, tensor)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Op = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors."""
    for tensor in tensors:
        _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_op("all_reduce", op, *tensors)
    return _done(async_op, *tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine a tensor of each process in one of them, ``dst``: it stays as it is."""
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_root("reduce", dst, group_dst)
    _check_op("reduce", op, tensor)
    return _done(async_op, tensor)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send a tensor of one process, ``src``, to all: it stays as it is."""
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_root("broadcast", src, group_src)
    return _done(async_op, tensor)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather a tensor of each process in all of them: it is copied to ``tensor_list[0]``."""
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_list(tensor_list, "tensor_list", "all_gather")
    return _done(async_op, _write("all_gather", tensor_list[0], tensor))


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of several tensors: ``output_tensor_lists[0]`` gets them."""
    if _is_outside(group):
        return None
    if len(output_tensor_lists) != 1 or len(output_tensor_lists[0]) != len(input_tensor_list):
        raise ValueError("all_gather_coalesced: expected one list of as many tensors")
    for output, input in zip(output_tensor_lists[0], input_tensor_list, strict=True):
        _write("all_gather_coalesced", output, input)
    return _done(async_op, *output_tensor_lists[0])


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather a tensor of each process into one, in all of them: it is copied."""
    _check(output_tensor, "output_tensor")
    _check(input_tensor, "input_tensor")
    if _is_outside(group):
        return None
    return _done(async_op, _write("all_gather_into_tensor", output_tensor, input_tensor))


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather_into_tensor` under another name."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather a tensor of each process in one, ``dst``: it is copied to ``gather_list[0]``."""
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_root("gather", dst, group_dst)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _check_list(gather_list, "gather_list", "gather")
    return _done(async_op, _write("gather", gather_list[0], tensor))


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send each process a tensor of ``src``'s list: ``scatter_list[0]`` is copied to ``tensor``."""
    _check(tensor, "tensor")
    if _is_outside(group):
        return None
    _check_root("scatter", src, group_src)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _check_list(scatter_list, "scatter_list", "scatter")
    return _done(async_op, _write("scatter", tensor, scatter_list[0]))


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors, and give each process one: ``input_list[0]`` is copied."""
    _check(output, "output")
    if _is_outside(group):
        return None
    _check_list(input_list, "input_list", "reduce_scatter")
    _check_op("reduce_scatter", op, *input_list)
    return _done(async_op, _write("reduce_scatter", output, input_list[0]))


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine tensors, and give each process a part: ``input`` is copied to ``output``."""
    _check(output, "output")
    _check(input, "input")
    if _is_outside(group):
        return None
    _check_op("reduce_scatter_tensor", op, input)
    return _done(async_op, _write("reduce_scatter_tensor", output, input))


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`reduce_scatter_tensor` under another name."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send a tensor of a list to each process: that of the second list is copied to the first."""
    if _is_outside(group):
        return None
    _check_list(output_tensor_list, "output_tensor_list", "all_to_all")
    _check_list(input_tensor_list, "input_tensor_list", "all_to_all")
    return _done(async_op, _write("all_to_all", output_tensor_list[0], input_tensor_list[0]))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of a tensor to each process: ``input`` is copied to ``output``."""
    _check(output, "output")
    _check(input, "input")
    if _is_outside(group):
        return None
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and (len(sizes) != 1 or sizes[0] != tensor.size(0)):
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return _done(async_op, _write("all_to_all_single", output, input))


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait for all processes: there is nobody else."""
    return None if _is_outside(group) else _done(async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier`, which would say who is late."""
    _is_outside(group)
