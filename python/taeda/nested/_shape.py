"""Ops that change the shape of nested tensors, or take parts of their dense dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda.nested import _ragged
from taeda.nested._pointwise import refuse_shapes, same_sequences
from taeda.nested._symbol import NestedInt
from taeda.nested._tensor import (
    FUNCTIONS,
    NestedTensor,
    answers,
    dim_in,
    like,
    make,
    pack,
)

_ops = _C.ops


def listed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes or dimensions given one by one or as one sequence."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], Sequence) else args


def dense_dim(name: str, x: NestedTensor, dim: int) -> int:
    """A dimension that is neither the batch nor ragged, counted from the first."""
    d = dim_in(dim, x.dim())
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == x._dim_:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d


# ---- parts --------------------------------------------------------------------------------------


@answers("unbind")
def unbind(input: NestedTensor, dim: int = 0) -> tuple[Any, ...]:
    """Each sequence, as a view of the values."""
    if dim_in(dim, input.dim()) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    ragged, d = input._ragged_, input._dim_ - 1
    if ragged.covers(input._values_.size(d)):
        return tuple(_ops.split_with_sizes(input._values_, ragged.counts, d))
    places = zip(ragged.starts, ragged.counts, strict=False)
    return tuple(input._values_.narrow(d, start, count) for start, count in places)


@answers("select")
def select(input: Any, dim: int, index: int) -> Any:
    """One sequence, or one index of a dense dimension."""
    d = dim_in(dim, input.dim())
    if d == 0:
        ragged = input._ragged_
        if not -len(ragged) <= index < len(ragged):
            raise IndexError(f"index {index} is out of bounds for {len(ragged)} sequences")
        i = index % len(ragged)
        return input._values_.narrow(input._dim_ - 1, ragged.starts[i], ragged.counts[i])
    d = dense_dim("select", input, dim)
    return like(input, input._values_.select(d - 1, index), input._dim_ - (d < input._dim_))


@answers("narrow")
def _narrow(input: Any, dim: int, start: Any, length: Any) -> Any:
    d = dense_dim("narrow", input, dim)
    return like(input, input._values_.narrow(d - 1, start, length))


@answers("slice")
def _slice(
    input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> NestedTensor:
    d = dense_dim("slice", input, dim)
    return like(input, _ops.slice(input._values_, d - 1, start, end, step))


@answers("split", "split_with_sizes", "tensor_split", named=True)
@answers("unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", named=True)
def _pieces(name: str, input: Any, sizes: Any, dim: int = 0) -> Any:
    """Cut a dense dimension into several."""
    d = dense_dim(name, input, dim)
    parts = getattr(_ops, name)(input._values_, sizes, d - 1)
    return type(parts)(like(input, part) for part in parts)


@answers("chunk")
def _chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    if dim_in(dim, input.dim()) != 0:
        return _pieces("chunk", input, chunks, dim)
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    count = len(input)
    step = max(1, -(-count // chunks))
    return tuple(take(input, list(range(i, min(i + step, count)))) for i in range(0, count, step))


def take(x: NestedTensor, sequences: list[int]) -> NestedTensor:
    """Some of the sequences, in an order."""
    old = x._ragged_
    counts = [old.counts[i] for i in sequences]
    new = _ragged.of_counts(counts, old.offsets)
    d = x._dim_ - 1
    if sequences == list(range(sequences[0], sequences[0] + len(sequences))) if sequences else True:
        whole = old.covers(x._values_.size(d)) if sequences else True
        if whole:
            start = old.starts[sequences[0]] if sequences else 0
            return make(x._values_.narrow(d, start, sum(counts)), new, x._dim_, x._strided_)
    device = x._values_.device
    starts = _C.tensor([old.starts[i] for i in sequences], device=device)
    index = starts[new.rows(device)] + new.positions(device)
    return make(x._values_.index_select(d, index), new, x._dim_, x._strided_)


# ---- several into one ---------------------------------------------------------------------------


def _all_same(name: str, tensors: Any) -> NestedTensor:
    """The first of tensors, which must all be nested, with the same sequences."""
    for x in tensors:
        if not isinstance(x, NestedTensor):
            raise RuntimeError(f"{name}(): nested tensors go together with nested ones only")
        if not same_sequences(tensors[0], x):
            raise refuse_shapes(name, tensors[0], x)
    return tensors[0]


@answers("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> NestedTensor:
    first = tensors[0]
    if isinstance(first, NestedTensor) and first._strided_ and dim_in(dim, first.dim()) == 0:
        return _cat_sequences(tensors)
    x = _all_same("cat", tensors)
    d = dense_dim("cat", x, dim)
    return like(x, _ops.cat([t._values_ for t in tensors], d - 1))


def _cat_sequences(tensors: Any) -> NestedTensor:
    """The sequences of several tensors as one batch."""
    for x in tensors:
        if not isinstance(x, NestedTensor) or x._dim_ != tensors[0]._dim_:
            raise RuntimeError("cat(): nested tensors go together with nested ones only")
    packed = [pack(x) for x in tensors]
    counts = [n for x in packed for n in x._ragged_.counts]
    new = _ragged.of_counts(counts, packed[0]._ragged_.offsets)
    d = packed[0]._dim_
    return make(_ops.cat([x._values_ for x in packed], d - 1), new, d, packed[0]._strided_)


@answers("stack")
def _stack(tensors: Any, dim: int = 0) -> NestedTensor:
    x = _all_same("stack", tensors)
    d = dim_in(dim, x.dim() + 1)
    if d == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    ragged = x._dim_ + (d <= x._dim_)
    return like(x, _ops.stack([t._values_ for t in tensors], d - 1), ragged)


# ---- views --------------------------------------------------------------------------------------


@answers("unsqueeze")
def _unsqueeze(input: Any, dim: int) -> NestedTensor:
    d = dim_in(dim, input.dim() + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return like(input, input._values_.unsqueeze(d - 1), input._dim_ + (d <= input._dim_))


@answers("squeeze")
def _squeeze(input: Any, dim: Any = None) -> NestedTensor:
    if dim is None:
        raise NotImplementedError(
            "squeeze() of a nested tensor needs a dimension: the batch and the ragged one stay"
        )
    dims = [dense_dim("squeeze", input, d) for d in ([dim] if isinstance(dim, int) else dim)]
    gone = [d for d in dims if input._values_.size(d - 1) == 1]
    values = _ops.squeeze(input._values_, [d - 1 for d in gone])
    return like(input, values, input._dim_ - sum(d < input._dim_ for d in gone))


@answers("permute")
def _permute(input: Any, *dims: Any) -> NestedTensor:
    n = input.dim()
    order = [dim_in(d, n) for d in listed(dims)]
    if len(order) != n or sorted(order) != list(range(n)):
        raise RuntimeError(f"permute(): {order} is no order of {n} dimensions")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = input._values_.permute([d - 1 for d in order[1:]])
    return like(input, values, order.index(input._dim_))


@answers("transpose", "swapaxes", "swapdims")
def _transpose(input: Any, dim0: int, dim1: int) -> NestedTensor:
    a, b = dim_in(dim0, input.dim()), dim_in(dim1, input.dim())
    if a == b:
        return input
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(input._dim_, input._dim_)
    return like(input, input._values_.transpose(a - 1, b - 1), ragged)


@answers("movedim", "moveaxis")
def _movedim(input: Any, source: Any, destination: Any) -> NestedTensor:
    n = input.dim()
    a = [dim_in(d, n) for d in ([source] if isinstance(source, int) else source)]
    b = [dim_in(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    rest = iter(d for d in range(n) if d not in a)
    places = dict(zip(b, a, strict=True))
    return _permute(input, [places[d] if d in places else next(rest) for d in range(n)])


def _product(sizes: Sequence[Any]) -> int:
    result = 1
    for n in sizes:
        result *= n
    return result


def _new_sizes(name: str, x: NestedTensor, sizes: tuple[Any, ...]) -> tuple[list[int], int]:
    """The values' sizes for a view of a nested tensor, and its ragged dimension."""
    old = list(x._values_.shape)
    before, after = _product(old[: x._dim_ - 1]), _product(old[x._dim_ :])

    def fits(part: Sequence[Any], count: int) -> bool:
        if any(isinstance(n, NestedInt) for n in part):
            return False
        known = _product([n for n in part if n != -1])
        unknown = len([n for n in part if n == -1])
        if not unknown:
            return known == count
        return unknown == 1 and known > 0 and count % known == 0

    marked = [i for i, n in enumerate(sizes) if isinstance(n, NestedInt)]
    free = marked or [i for i, n in enumerate(sizes) if i and n == -1]
    for i in free:
        right_sizes = (not marked or sizes[i] == x._ragged_.size) and sizes[0] in (-1, len(x))
        if right_sizes and fits(sizes[1:i], before) and fits(sizes[i + 1 :], after):
            return [*sizes[1:i], old[x._dim_ - 1], *sizes[i + 1 :]], i
    raise RuntimeError(f"{name}(): cannot view shape {tuple(x._size())} as {list(sizes)}")


def _filled(sizes: list[int], d: int, x: NestedTensor) -> list[int]:
    """Sizes with -1 replaced: there may be one before and one behind the ragged dimension."""
    old = list(x._values_.shape)
    parts = [(sizes[: d - 1], old[: x._dim_ - 1]), (sizes[d:], old[x._dim_ :])]
    done = []
    for new, was in parts:
        known = _product([n for n in new if n != -1])
        done.append([n if n != -1 else _product(was) // known for n in new])
    return [*done[0], sizes[d - 1], *done[1]]


@answers("view", "reshape", named=True)
def _reshaped(name: str, input: Any, *sizes: Any) -> Any:
    if name == "view" and len(sizes) == 1 and isinstance(sizes[0], _C.dtype):
        return like(input, input._values_.view(sizes[0]))
    new, d = _new_sizes(name, input, listed(sizes))
    return like(input, getattr(input._values_, name)(_filled(new, d, input)), d)


@answers("view_as", "reshape_as", "expand_as", named=True)
def _shaped_as(name: str, input: Any, other: Any) -> Any:
    if not isinstance(other, NestedTensor):
        raise RuntimeError(f"{name}(): a nested tensor does not fit the shape of a dense one")
    if not isinstance(input, NestedTensor):
        raise RuntimeError(f"{name}(): a dense tensor does not fit the shape of a nested one")
    return FUNCTIONS[name.removesuffix("_as")](input, *other._size())


@answers("flatten")
def _flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = dim_in(start_dim, input.dim()), dim_in(end_dim, input.dim())
    if first == last:
        return input
    if first == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= input._dim_ <= last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = input._dim_ - (last - first if last < input._dim_ else 0)
    return like(input, input._values_.flatten(first - 1, last - 1), ragged)


@answers("unflatten")
def _unflatten(input: Any, dim: int, sizes: Any) -> Any:
    d = dense_dim("unflatten", input, dim)
    values = input._values_.unflatten(d - 1, sizes)
    return like(input, values, input._dim_ + (len(sizes) - 1 if d < input._dim_ else 0))


@answers("expand", "broadcast_to")
def _expand(input: Any, *sizes: Any) -> Any:
    new, n = listed(sizes), input.dim()
    if len(new) != n:
        raise RuntimeError(f"expand(): a nested tensor keeps its {n} dimensions, got {list(new)}")
    ragged_fits = new[input._dim_] in (-1, input._ragged_.size)
    if new[0] not in (-1, len(input)) or not ragged_fits:
        raise RuntimeError(f"expand(): cannot expand {tuple(input._size())} to {list(new)}")
    inner = [-1 if i == input._dim_ else n for i, n in enumerate(new)]
    return like(input, input._values_.expand(inner[1:]))


@answers("repeat", "tile")
def _repeat(input: Any, *sizes: Any) -> Any:
    new = listed(sizes)
    if len(new) != input.dim() or new[0] != 1 or new[input._dim_] != 1:
        raise NotImplementedError(
            f"repeat() of a nested tensor takes a count for each dimension, 1 for the batch and "
            f"the ragged one, got {list(new)}"
        )
    return like(input, input._values_.repeat(new[1:]))


@answers("repeat_interleave")
def _repeat_interleave(input: Any, repeats: Any = None, dim: Any = None, **kwargs: Any) -> Any:
    if dim is None or isinstance(repeats, NestedTensor):
        raise NotImplementedError("repeat_interleave() of a nested tensor needs a dense dimension")
    d = dense_dim("repeat_interleave", input, dim)
    return like(input, _ops.repeat_interleave(input._values_, repeats, d - 1, **kwargs))


@answers("constant_pad_nd", "pad")
def _pad(input: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    if len(pad) // 2 > input.dim() - 1 - input._dim_:
        raise RuntimeError("pad(): not supported for NestedTensor on ragged dim")
    return like(input, _ops.pad(input._values_, pad, *args, **kwargs))


@answers("view_as_real", "view_as_complex")
def _as_parts(input: Any) -> Any:
    op = _ops.view_as_real if input.is_complex() else _ops.view_as_complex
    return like(input, op(input._values_))
