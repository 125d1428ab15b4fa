"""Rules for indices, batched or not, of tensors that are batched or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.along import along, shifted
from taeda._batching.dispatch import Op, check_target, loop, rule
from taeda._batching.pointwise import aligned
from taeda._batching.tensor import Level, flattened, front, separate, wrap
from taeda._C import Tensor

ops = _C.ops


def _masks_as_indices(indices: Sequence[Any], level: Level) -> list[Any]:
    found: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in (_C.bool, _C.uint8):
            found.append(index)
        elif separate(index, level)[1]:
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask."
            )
        else:
            found += ops.nonzero(index).unbind(1)
    return found


class Gathered:
    """The layout of gathered elements within the values.

    Attributes:
        indices: of the values, whose first dimension is the hidden one.
        rank: how many dimensions the indices have together.
        first: the first dimension that is indexed; None where the indices' dimensions come first.
    """

    def __init__(self, indices: Sequence[Any], level: Level) -> None:
        given = _masks_as_indices(indices, level)
        positions = [i for i, index in enumerate(given) if index is not None]
        self.rank = max(given[i].dim() for i in positions)
        adjacent = positions[-1] - positions[0] == len(positions) - 1
        self.first = positions[0] if adjacent else None
        self.indices: list[Any] = [
            ops.arange(level.size).reshape(-1, *(1,) * self.rank),
            *(None if index is None else self._aligned(index, level) for index in given),
        ]

    def _aligned(self, index: Any, level: Level) -> Tensor:
        value, hidden = separate(index, level)
        return aligned(value, self.rank) if hidden else value

    def to_result(self, found: Tensor) -> Tensor:
        """From the order (batch, indices, rest) to that of the result."""
        if not self.first or not self.rank:
            return found
        start = 1 + self.rank
        return found.permute(
            0, *range(start, start + self.first), *range(1, start),
            *range(start + self.first, found.dim()),
        )  # fmt: skip

    def from_result(self, values: Tensor) -> Tensor:
        """The inverse."""
        if not self.first or not self.rank:
            return values
        stop = 1 + self.first
        return values.permute(
            0, *range(stop, stop + self.rank), *range(1, stop),
            *range(stop + self.rank, values.dim()),
        )  # fmt: skip


@rule("index")
def index(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index`: x[i, :, j]."""
    x, indices = args
    value, hidden = separate(x, level)
    if hidden and not any(separate(i, level)[1] for i in indices):
        return wrap(_plain_index(op, value, indices, level), level)
    gathered = Gathered(indices, level)
    found = op.call([front(x, level), gathered.indices])
    return wrap(gathered.to_result(found), level)


def _plain_index(op: Op, value: Tensor, indices: Sequence[Any], level: Level) -> Tensor:
    given = _masks_as_indices(indices, level)
    positions = [i for i, index in enumerate(given) if index is not None]
    found = op.call([value, [None, *given]])
    if not positions or positions[-1] - positions[0] == len(positions) - 1:
        return found
    return found.movedim(max(given[i].dim() for i in positions), 0)


@rule("index_put")
def index_put(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_put`: x[i, :, j] = values, or += them."""
    x, indices, values, accumulate = args
    if op.inplace:
        check_target(op, level, args)
    target = front(x, level)
    gathered = Gathered(indices, level)
    used = sum(i is not None for i in gathered.indices[1:])
    rank = x.dim() - used + gathered.rank
    value, hidden = separate(values, level)
    if gathered.first and gathered.rank:
        value = value if hidden else value.unsqueeze(0)
        hidden = True
    if hidden:
        value = gathered.from_result(aligned(value, rank))
    if op.inplace:
        op.call([target, gathered.indices, value, accumulate])
        return x
    return wrap(op.call([target, gathered.indices, value, accumulate]), level)


_PUT = Op(
    "index_put",
    "index_put(self: Tensor, indices: Tensor?[], values: Tensor, accumulate: bool) -> Tensor",
    ops.index_put,
    {"composite": False, "elementwise": False, "inplace": False, "vmap": None},
)


@rule("_index_backward")
def index_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_index_backward`: gradients are added up where they came from."""
    grad, indices, sizes = args
    zeros = wrap(ops.zeros([level.size, *sizes], dtype=grad.dtype, device=grad.device), level)
    return index_put(_PUT, level, [zeros, indices, grad, True])


@rule("index_select")
def index_select(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_select`: as `index`, where the index is batched."""
    x, dim, chosen = args
    if not separate(chosen, level)[1]:
        value = front(x, level)
        if x.dim():
            return wrap(op.call([value, shifted(dim, x.dim()), chosen]), level)
        found = op.call([value.unsqueeze(1), 1, chosen.reshape(-1)])
        return wrap(found.squeeze(1), level)
    at = shifted(dim, x.dim())
    lines = _with_dim(front(x, level)).movedim(at, 1)
    positions = flattened(_with_dim(front(chosen, level)))
    found = ops.index(lines, [ops.arange(level.size).unsqueeze(1), positions]).movedim(1, at)
    return _like(x, found, level)


@rule("index_add", "index_copy")
def index_change(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_add` and `index_copy`: by `index_put`, where the index is batched."""
    x, dim, chosen, source, *alpha = args
    if op.inplace:
        check_target(op, level, args)
    at = shifted(dim, x.dim())
    value, new = (_with_dim(front(t, level)) for t in (x, source))
    if not separate(chosen, level)[1]:
        result = op.call([value, at, chosen, new, *alpha])
        return x if op.inplace else _like(x, result, level)
    new = new * alpha[0] if alpha and alpha[0] != 1 else new
    return _put(op, level, x, chosen, at, new.movedim(at, 1))


@rule("index_fill")
def index_fill(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_fill`: by `index_put`, where the index or the number is batched."""
    x, dim, chosen, number = args
    if op.inplace:
        check_target(op, level, args)
    at = shifted(dim, x.dim())
    if not separate(chosen, level)[1] and not separate(number, level)[1]:
        result = op.call([_with_dim(front(x, level)), at, chosen, number])
        return x if op.inplace else _like(x, result, level)
    if isinstance(number, Tensor):
        new = front(number, level).reshape(level.size, *(1,) * max(x.dim(), 1))
    else:
        new = ops.scalar_tensor(number, dtype=x.dtype)
    return _put(op, level, x, chosen, at, new)


def _put(op: Op, level: Level, x: Tensor, chosen: Tensor, at: int, new: Tensor) -> Any:
    """Change the lines of `x` that `chosen` names, along dimension `at` of the value."""
    lines = _with_dim(front(x, level)).movedim(at, 1)
    positions = flattened(_with_dim(front(chosen, level)))
    where, new = [ops.arange(level.size).unsqueeze(1), positions], new.to(x.dtype)
    adds = op.name == "index_add"
    if op.inplace:
        ops.index_put_(lines, where, new, adds)
        return x
    return _like(x, ops.index_put(lines, where, new, adds).movedim(1, at), level)


def _with_dim(value: Tensor) -> Tensor:
    """`value`, as a tensor of one element where each element of the batch has no dimension."""
    return value if value.dim() > 1 else value.unsqueeze(1)


def _like(x: Tensor, result: Tensor, level: Level) -> Tensor:
    return wrap(result if x.dim() else result.squeeze(1), level)


@rule("_scatter_fill", "gather", "scatter", "scatter_add", "scatter_reduce")
def gather(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`gather`, `scatter` and the like: all tensors along one dimension."""
    ranks = {a.dim() for a in args if isinstance(a, Tensor)}
    if ranks in ({0}, {args[0].dim()}):
        return along(op, level, args)
    if ranks == {0, 1}:  # a tensor without dimensions counts as one with a single element
        given = [a.reshape(1) if isinstance(a, Tensor) and not a.dim() else a for a in args]
        if op.inplace:
            return loop(op, level, args)
        result = op.call(given)
        like = args[2] if op.name == "gather" else args[0]
        return result.reshape(like.shape)
    return loop(op, level, args)


@rule("embedding")
def embedding(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`embedding`: as `index`, where the weights are batched."""
    weight, indices, padding = args
    w, w_hidden = separate(weight, level)
    positions, hidden = separate(indices, level)
    if not w_hidden:
        return wrap(op.call([w, positions, padding]), level)
    if not hidden:
        positions = positions.unsqueeze(0)
    batch = ops.arange(level.size).reshape(-1, *(1,) * (positions.dim() - 1))
    found = ops.index(w, [batch, positions])
    if padding >= 0:
        found = ops.where((positions == padding).unsqueeze(-1), found.detach(), found)
    return wrap(found, level)


@rule("_embedding_sums")
def embedding_sums(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_embedding_sums`: as `embedding`, summed up."""
    weight, indices = args
    w, hidden = separate(weight, level)
    if not hidden:
        return wrap(op.call([w, separate(indices, level)[0]]), level)
    positions = front(indices, level)
    batch = ops.arange(level.size).reshape(-1, *(1,) * (positions.dim() - 1))
    return wrap(ops.index(w, [batch, positions]).sum(-2), level)


@rule("embedding_dense_backward")
def embedding_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`embedding_dense_backward`: one table for all."""
    grad, indices, count, padding = args
    g, positions = front(grad, level), front(indices, level)
    if padding >= 0:
        g = g.masked_fill((positions == padding).unsqueeze(-1), 0)
    start = ops.arange(level.size).mul(count).reshape(-1, *(1,) * (positions.dim() - 1))
    table = op.call([g, positions + start, level.size * count, -1])
    return wrap(table.reshape(level.size, count, -1), level)


@rule("_take_indices", "_take_indices_backward")
def take_indices(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_take_indices` and its gradient: with the same indices for every element."""
    x, positions, *sizes = args
    return wrap(op.call([front(x, level), positions, *([level.size, *s] for s in sizes)]), level)


@rule("searchsorted")
def search(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`searchsorted`: in one row, or in a row for each line of values."""
    row, values, *rest = args
    given = [separate(a, level) for a in args]
    if row.dim() == 1 and isinstance(values, Tensor):
        if not given[0][1] and not given[-1][1]:
            return wrap(op.call([row, given[1][0], *rest]), level)
        flat = flattened(front(values, level))
        sorter = rest[-1] if rest[-1] is None else front(rest[-1], level)
        found = op.call([front(row, level), flat, *rest[:-1], sorter])
        return wrap(found.reshape(level.size, *values.shape), level)
    if not isinstance(values, Tensor):
        return loop(op, level, args)
    sorter = rest[-1] if rest[-1] is None else front(rest[-1], level)
    return wrap(op.call([front(row, level), front(values, level), *rest[:-1], sorter]), level)


@rule("bucketize")
def bucketize(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`bucketize`: `searchsorted` with its arguments swapped."""
    values, boundaries, int32, right = args
    if not separate(boundaries, level)[1]:
        return wrap(op.call([separate(values, level)[0], *args[1:]]), level)
    values = values if isinstance(values, Tensor) else ops.scalar_tensor(values)
    positions = flattened(front(values, level))
    found = ops.searchsorted(boundaries._value, positions, out_int32=int32, right=right)
    return wrap(found.reshape(level.size, *values.shape), level)


@rule("isin")
def isin(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`isin`: by comparing all pairs where the second set is batched."""
    elements, others, unique, inverted = args
    value, hidden = separate(others, level)
    if not hidden:
        return wrap(op.call([separate(elements, level)[0], others, unique, inverted]), level)
    found = elements if isinstance(elements, Tensor) else ops.scalar_tensor(elements)
    left = front(found, level).unsqueeze(-1)
    right = flattened(value).reshape(level.size, *(1,) * found.dim(), others.numel())
    result = (left == right).any(-1)
    return wrap(~result if inverted else result, level)
