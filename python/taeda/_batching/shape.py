"""Rules for shape operations, and for factories like `zeros_like`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.along import shifted
from taeda._batching.dispatch import Op, check_target, refuse, rule
from taeda._batching.tensor import Level, flattened, front, wrap
from taeda._C import Tensor

ops = _C.ops


def direct(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Run the operation on the values as they are."""
    if op.inplace:
        check_target(op, level, args)
    given = [front(a, level) if isinstance(a, Tensor) else a for a in args]
    position = op.position("memory_format")
    if position is not None and given[position] not in (None, _C.preserve_format):
        given[position] = _C.contiguous_format  # the others are for tensors of one more dimension
    result = op.call(given)
    if op.inplace:
        return args[0]
    if isinstance(result, Tensor):
        return wrap(result, level)
    return tuple(wrap(item, level) for item in result)


@rule("view_as_complex")
def last_dim(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """As `direct`, for what needs a last dimension."""
    return direct(op, level, args) if args[0].dim() else refuse(op, args)


@rule("constant_pad_nd")
def pad(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`constant_pad_nd`, which counts dimensions from the last one."""
    return refuse(op, args) if len(args[1]) > 2 * args[0].dim() else direct(op, level, args)


def new(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`new_zeros` and the like."""
    return wrap(op.call([args[0]._value, [level.size, *args[1]], *args[2:]]), level)


@rule("expand")
def expand(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Expand to sizes that may have more dimensions in front."""
    x, size, *rest = args
    value, missing = x._value, len(size) - x.dim()
    if missing < 0:
        return refuse(op, args)
    if missing:
        value = value.reshape(level.size, *(1,) * missing, *x.shape)
    return wrap(op.call([value, [level.size, *size], *rest]), level)


@rule("view", "_reshape_copy")
def view(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`view` and `_reshape_copy`, by sizes or by a dtype."""
    x, size = args
    if not isinstance(size, (tuple, list)):
        if not x.dim() and size.itemsize != x.dtype.itemsize:
            return refuse(op, args)
        return wrap(op.call([x._value, size]), level)
    sizes = list(size)
    if -1 in sizes:
        known = 1
        for n in sizes:
            known *= n if n != -1 else 1
        if sizes.count(-1) > 1 or not known or x.numel() % known:
            return refuse(op, args)
        sizes[sizes.index(-1)] = x.numel() // known
    return wrap(op.call([x._value, [level.size, *sizes]]), level)


@rule("squeeze")
def squeeze(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Remove dimensions of size 1, never the hidden one."""
    x = args[0]
    if len(args) == 1:
        dims = [i + 1 for i, n in enumerate(x.shape) if n == 1]
    else:
        dims = shifted([args[1]] if isinstance(args[1], int) else args[1], x.dim())
        dims = [d for d in dims if d <= x.dim()]
    if op.inplace:
        check_target(op, level, args)
        op.function(x._value, dims)
        _C._hide_again(x, x._value)
        return x
    return wrap(ops.squeeze(x._value, dims), level)


@rule("unsqueeze")
def unsqueeze(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Add a dimension."""
    x, dim = args
    dim = shifted(dim, x.dim() + 1)
    if op.inplace:
        check_target(op, level, args)
        op.function(x._value, dim)
        _C._hide_again(x, x._value)
        return x
    return wrap(ops.unsqueeze(x._value, dim), level)


@rule("t", "transpose")
def transpose(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Swap two dimensions; `t` those of a matrix."""
    x = args[0]
    if op.name == "t" and x.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.dim()}D")
    dims = (0, 1)[: x.dim()] if op.name == "t" else args[1:]
    if len(dims) < 2:
        dims = (0, 0)
    first, second = shifted(dims, x.dim())
    if x.dim() == 0:
        first = second = 0
    if op.inplace:
        check_target(op, level, args)
        ops.transpose_(x._value, first, second)
        _C._hide_again(x, x._value)
        return x
    return wrap(ops.transpose(x._value, first, second), level)


@rule("permute")
def permute(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Reorder the dimensions."""
    x, dims = args
    if len(dims) != x.dim():
        return refuse(op, args)
    return wrap(op.call([x._value, [0, *(shifted(dims, x.dim()) if dims else ())]]), level)


@rule("repeat")
def repeat(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Repeat along dimensions, of which there may be more in front."""
    x, repeats = args
    value, missing = x._value, len(repeats) - x.dim()
    if missing < 0:
        return refuse(op, args)
    if missing:
        value = value.reshape(level.size, *(1,) * missing, *x.shape)
    return wrap(op.call([value, [1, *repeats]]), level)


@rule("roll")
def roll(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Rotate along dimensions, or all elements in their order."""
    x, shifts, dims = args
    if dims or not x.dim():
        if not x.dim():
            return wrap(x._value.clone(), level)
        return wrap(op.call([x._value, shifts, shifted(dims, x.dim())]), level)
    flat = flattened(x._value)
    return wrap(op.call([flat, shifts, [1]]).reshape(x._value.shape), level)


@rule("_as_strided")
def as_strided(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Take the same strided view of each element; batched tensors have real strides and offsets."""
    x, size, stride, offset = args[:4]
    if op.inplace:
        check_target(op, level, args)
    value = x._value
    sizes, strides = [level.size, *size], [value.stride(0), *stride]
    if op.inplace:
        value.as_strided_(sizes, strides, offset)
        _C._hide_again(x, value)
        return x
    return wrap(value.as_strided(sizes, strides, offset), level)


@rule("cat")
def cat(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`cat`: empty vectors among tensors of other ranks are left out."""
    tensors, dim = args
    kept = [t for t in tensors if tuple(t.shape) != (0,)] or tensors
    dim = shifted(dim, kept[0].dim())
    if kept[0].dim() == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    return wrap(op.call([[front(t, level) for t in kept], dim]), level)


@rule("_block_diag")
def block_diag(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Place matrices of the last two dimensions along a diagonal."""
    return wrap(op.call([[front(t, level) for t in args[0]]]), level)


@rule("stack")
def stack(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Join along a new dimension."""
    tensors, dim = args
    dim = shifted(dim, tensors[0].dim() + 1)
    return wrap(op.call([[front(t, level) for t in tensors], dim]), level)
