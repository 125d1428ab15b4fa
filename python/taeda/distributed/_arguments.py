"""Arguments of collectives: checks, and tensors as their elements in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from taeda import Tensor

from ._algorithms import slices_of
from ._group import GroupMember, get_group_rank
from ._process_group import ProcessGroup
from ._types import ReduceOp, _RedOpType

Op: TypeAlias = "_RedOpType | ReduceOp"
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def check(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type Tensor, got "
            f"{type(value).__name__}"
        )


def check_list(values: Any, name: str, function: str, count: int) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[Tensor]"
        )
    if len(values) != count:
        raise RuntimeError(
            f"{function}: {name} must have one tensor for each process of the group, which is "
            f"{count}, got {len(values)}"
        )


def root_of(
    function: str, group: ProcessGroup, rank: int | None, group_rank: int | None, default: bool
) -> int:
    """The number in the group of the process that gives or gets something."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{function}: a rank is given twice, in the group and among all processes")
    if rank is None and group_rank is None:
        if not default:
            raise ValueError(f"{function}: a rank must be given, in the group or among all")
        rank = 0
    if rank is not None and group is not GroupMember.WORLD:
        return get_group_rank(group, rank)
    root = rank if rank is not None else group_rank
    if root is None or not 0 <= root < group.size():
        raise RuntimeError(f"{function}: invalid root rank: {root}")
    return root


def check_op(function: str, op: Op, *tensors: Tensor) -> None:
    if not isinstance(getattr(op, "op", op), _RedOpType):
        raise TypeError(f"{function}: op must be a ReduceOp such as ReduceOp.SUM, not {op!r}")
    for t in tensors:
        if t.is_complex() and not supports_complex(op):
            raise ValueError(f"{function} does not support {op} on complex tensors")
        if op in _BITS and (t.is_floating_point() or t.is_complex()):
            raise RuntimeError(f"Cannot use {op} with non-integral dtype")


def check_same(function: str, output: Tensor, input: Tensor, times: int = 1) -> None:
    if output.dtype != input.dtype:
        raise ValueError(
            f"Invalid usage of tensors with different dtypes: {output.dtype} and {input.dtype}"
        )
    if output.numel() != times * input.numel():
        raise RuntimeError(
            f"{function}: invalid tensor size (expected {times} times {tuple(input.shape)}, got "
            f"{tuple(output.shape)})"
        )


def flat_of(tensor: Tensor) -> Tensor:
    """A tensor's elements in a row: its own memory where it is contiguous, else a copy."""
    return tensor.detach().contiguous().reshape(-1)


def write_back(tensor: Tensor, flat: Tensor) -> None:
    if tensor.data_ptr() != flat.data_ptr():
        tensor.detach().copy_(flat.reshape(tensor.shape))


def parts_of(flat: Tensor, count: int) -> list[Tensor]:
    return [flat.narrow(0, *part) for part in slices_of(flat.numel(), count)]


def supports_complex(reduceOp: Op) -> bool:
    """Whether complex numbers can be combined so."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, *_BITS)


def split_of(tensor: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    """The parts of a tensor along its first dimension, flat."""
    rows = tensor.size(0) if tensor.dim() else 1
    if not sizes:
        if rows % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [rows // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    each = tensor.numel() // rows if rows else 0
    return list(flat_of(tensor).split([size * each for size in sizes]))
