"""Rules for elementwise operations with broadcasting operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.dispatch import Op, check_target, rule, wrapped
from taeda._batching.tensor import BatchedTensor, Level, flattened, front, separate, wrap
from taeda._C import Tensor

ops = _C.ops

# Operands that do not affect the result's dtype.
_CONDITIONS = ("condition", "mask")


def aligned(value: Tensor, rank: int) -> Tensor:
    """Insert dimensions of size 1 after the first one, so that `rank` dimensions follow it."""
    missing = rank + 1 - value.dim()
    if missing <= 0:
        return value
    return value.reshape(value.size(0), *(1,) * missing, *value.shape[1:])


def _operands(op: Op, level: Level, args: Sequence[Any]) -> list[Any]:
    rank, dtypes = 0, set()
    for i in op.tensors:
        a = args[i]
        if a is not None and not _C._is_number(a):
            rank = max(rank, a.dim())
            dtypes.add(a.dtype)
    if len(dtypes) > 1:
        return _promoted(op, level, args)
    given = list(args)
    for i in op.tensors:
        a = args[i]
        if type(a) is BatchedTensor and a._level is level:
            given[i] = aligned(a._value, rank)
    return given


def _promoted(op: Op, level: Level, args: Sequence[Any]) -> list[Any]:
    """The operands where dtypes differ: tensors without dimensions count less than others."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    rank = max(t.dim() for t in tensors)
    dtypes = {t.dtype for t in tensors}
    given = list(args)
    for i, a in enumerate(args):
        if not isinstance(a, Tensor):
            continue
        if type(a) is not BatchedTensor or a._level is not level:
            if not rank and len(dtypes) > 1 and not _C._is_number(a):
                given[i] = a.reshape(1)  # promotes like the values, which have a dimension
            continue
        value = aligned(a._value, rank)
        if rank and not a.dim() and len(dtypes) > 1 and op.args[i] not in _CONDITIONS:
            value = _as_zero_dim(op, value, args, i)
        given[i] = value
    return given


def _as_zero_dim(op: Op, value: Tensor, args: Sequence[Any], position: int) -> Tensor:
    """Convert `value` so that it promotes like the zero-dim tensor that it represents."""
    for i, other in enumerate(args):
        if i == position or not isinstance(other, Tensor) or not other.dim():
            continue
        if op.args[i] not in _CONDITIONS and ops.result_type(args[position], other) == other.dtype:
            return value.to(other.dtype)
    return value


def pointwise(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Put the hidden dimension in front of all others, and compute with the values."""
    if op.inplace:
        check_target(op, level, args)
        op.call(_operands(op, level, args))
        return args[0]
    return wrapped(op.call(_operands(op, level, args)), level)


@rule("masked_fill")
def masked_fill(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`masked_fill`: as `where`, if the value is batched."""
    self, mask, value = args
    if not separate(value, level)[1]:
        if op.inplace or self.dim():
            return pointwise(op, level, args)
        return wrap(ops.masked_fill(front(self, level), front(mask, level), value), level)
    if value.dim():
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.dim()} dimension(s)."
        )
    rank = max(self.dim(), mask.dim())
    given = [aligned(front(x, level), rank) for x in (mask, value, self)]
    result = ops.where(given[0], given[1].to(self.dtype), given[2])
    if not op.inplace:
        return wrap(result, level)
    check_target(op, level, args)
    self._value.copy_(result)
    return self


@rule("fill")
def fill_(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`fill_` and `fill`: `pointwise`, where the number may be batched."""
    self, value = args
    if op.inplace:
        check_target(op, level, args)
    if type(value) is not BatchedTensor or value._level is not level:
        result = op.call([self._value, value])
    elif value.dim():
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} "
            "dimensions."
        )
    elif op.inplace:
        self._value.copy_(aligned(value._value, self.dim()))
    else:
        result = aligned(value._value, self.dim()).expand(level.size, *self.shape)
        return wrap(result.to(self.dtype, copy=True), level)
    return self if op.inplace else wrap(result, level)


def loss(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Losses of pairs of elements: the mean or the sum is each one's own."""
    position = op.args.index("reduction")
    reduction = args[position]
    rank = max(a.dim() for a in args if isinstance(a, Tensor))
    elements: list[Any] = []
    for i, a in enumerate(args):
        value, hidden = separate(a, level)
        if i < 2:
            value = front(a, level)
        elements.append(aligned(value, rank) if hidden or i < 2 else value)
    elements[position] = 0
    result = op.call(elements)
    if reduction:
        rest = flattened(result)
        result = rest.mean(1) if reduction == 1 else rest.sum(1)
    return wrap(result, level)
