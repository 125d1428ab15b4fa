"""Rules for indices, batched or not, of tensors that are batched or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.along import along, shifted
from taeda._batching.dispatch import Op, check_target, loop
from taeda._batching.pointwise import aligned
from taeda._batching.tensor import Level, flattened, front, separate, wrap
from taeda._C import Tensor

ops = _C.ops


def _masks_as_places(indices: Sequence[Any], level: Level) -> list[Any]:
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
    """Where the elements that some indices choose lie in the values.

    Attributes:
        indices: of the values, whose first dimension is the hidden one.
        rank: how many dimensions the indices have together.
        first: the first dimension that is indexed; None where the indices' dimensions come first.
    """

    def __init__(self, indices: Sequence[Any], level: Level) -> None:
        given = _masks_as_places(indices, level)
        places = [i for i, index in enumerate(given) if index is not None]
        self.rank = max(given[i].dim() for i in places)
        adjacent = places[-1] - places[0] == len(places) - 1
        self.first = places[0] if adjacent else None
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
        """The other way round."""
        if not self.first or not self.rank:
            return values
        stop = 1 + self.first
        return values.permute(
            0, *range(stop, stop + self.rank), *range(1, stop),
            *range(stop + self.rank, values.dim()),
        )  # fmt: skip


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
    given = _masks_as_places(indices, level)
    places = [i for i, index in enumerate(given) if index is not None]
    found = op.call([value, [None, *given]])
    if not places or places[-1] - places[0] == len(places) - 1:
        return found
    return found.movedim(max(given[i].dim() for i in places), 0)


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


def index_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_index_backward`: gradients are added up where they came from."""
    grad, indices, sizes = args
    zeros = wrap(ops.zeros([level.size, *sizes], dtype=grad.dtype, device=grad.device), level)
    put = Op("index_put", *_INDEX_PUT)
    return index_put(put, level, [zeros, indices, grad, True])


_INDEX_PUT = (
    "index_put(self: Tensor, indices: Tensor?[], values: Tensor, accumulate: bool = False) -> "
    "Tensor",
    ops.index_put,
    {"composite": False, "elementwise": False, "inplace": False},
)


def _chosen_along(x: Tensor, dim: int, index: Any) -> tuple[Any, ...]:
    """The indices that choose along one dimension."""
    return (None,) * ((shifted(dim, x.dim()) - 1) if x.dim() else 0) + (index,)


def index_select(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_select`: as `index`, where the index is batched."""
    x, dim, chosen = args
    if not separate(chosen, level)[1]:
        value = front(x, level)
        if x.dim():
            return wrap(op.call([value, shifted(dim, x.dim()), chosen]), level)
        found = op.call([value.unsqueeze(1), 1, chosen.reshape(-1)])
        return wrap(found.squeeze(1), level)
    value = front(x, level)
    value = value if x.dim() else value.unsqueeze(1)
    places = separate(chosen, level)[0].reshape(level.size, -1)
    at = shifted(dim, x.dim())
    lines = value.movedim(at, 1)
    found = lines[ops.arange(level.size).unsqueeze(1), places].movedim(1, at)
    return wrap(found if x.dim() else found.squeeze(1), level)


def index_change(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`index_add`, `index_copy` and `index_fill`: by `index_put`, where the index is batched."""
    x, dim, chosen, source, *alpha = args
    if op.inplace:
        check_target(op, level, args)
    batched_number = isinstance(source, Tensor) and op.name == "index_fill"
    batched_number = batched_number and separate(source, level)[1]
    if not separate(chosen, level)[1] and not batched_number and op.name != "index_fill":
        return _shared_index(op, level, args)
    if not separate(chosen, level)[1] and not batched_number:
        given = [front(x, level), shifted(dim, x.dim()), chosen, source]
        if not x.dim():
            given[0] = given[0].unsqueeze(1)
        result = op.call(given)
        return x if op.inplace else wrap(result if x.dim() else result.squeeze(1), level)
    value = front(x, level)
    value = value if x.dim() else value.unsqueeze(1)
    at = shifted(dim, x.dim())
    lines = value.movedim(at, 1)
    places = front(chosen, level).reshape(level.size, -1)
    where = [ops.arange(level.size).unsqueeze(1), places]
    if not isinstance(source, Tensor):
        new = ops.scalar_tensor(source, dtype=x.dtype)
    elif op.name == "index_fill":
        new = front(source, level).reshape(level.size, *(1,) * (lines.dim() - 1))
    else:
        new = front(source, level)
        new = new if x.dim() else new.reshape(level.size, -1)
        new = (
            new.movedim(at, 1)
            if source.dim()
            else new.reshape(level.size, *(1,) * (lines.dim() - 1))
        )
        new = new * alpha[0] if alpha and alpha[0] != 1 else new
    if op.inplace:
        ops.index_put_(lines, where, new.to(x.dtype), op.name == "index_add")
        return x
    result = ops.index_put(lines, where, new.to(x.dtype), op.name == "index_add").movedim(1, at)
    return wrap(result if x.dim() else result.squeeze(1), level)


def _shared_index(op: Op, level: Level, args: Sequence[Any]) -> Any:
    x, dim, chosen, source, *alpha = args
    value, new = front(x, level), front(source, level)
    if not x.dim():
        value = value.unsqueeze(1)
    if new.dim() < value.dim():
        new = new.unsqueeze(1)
    result = op.call([value, shifted(dim, x.dim()), chosen, new, *alpha])
    if op.inplace:
        return x
    return wrap(result if x.dim() else result.squeeze(1), level)


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


def embedding(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`embedding`: batched weights become one table."""
    weight, indices, padding = args
    w, w_hidden = separate(weight, level)
    places, hidden = separate(indices, level)
    if not w_hidden:
        return wrap(op.call([w, places, padding]), level)
    if not hidden:
        places = places.unsqueeze(0)
    start = ops.arange(level.size).mul(weight.size(0)).reshape(-1, *(1,) * (places.dim() - 1))
    found = op.call([w.reshape(-1, w.size(-1)), places + start, -1])
    if padding >= 0:
        found = ops.where((places == padding).unsqueeze(-1), found.detach(), found)
    return wrap(found, level)


def embedding_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`embedding_dense_backward`: one table for all."""
    grad, indices, count, padding = args
    g, places = front(grad, level), front(indices, level)
    if padding >= 0:
        g = g.masked_fill((places == padding).unsqueeze(-1), 0)
    start = ops.arange(level.size).mul(count).reshape(-1, *(1,) * (places.dim() - 1))
    table = op.call([g, places + start, level.size * count, -1])
    return wrap(table.reshape(level.size, count, -1), level)


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


def bucketize(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`bucketize`: `searchsorted`, with its arguments the other way round."""
    values, boundaries, int32, right = args
    if not separate(boundaries, level)[1]:
        return wrap(op.call([separate(values, level)[0], *args[1:]]), level)
    values = values if isinstance(values, Tensor) else ops.scalar_tensor(values)
    places = flattened(front(values, level))
    found = ops.searchsorted(boundaries._value, places, out_int32=int32, right=right)
    return wrap(found.reshape(level.size, *values.shape), level)


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
