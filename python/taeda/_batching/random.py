"""Rules for operations that draw random numbers, following the `randomness` of the vmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.dispatch import ESCAPED, Op, loop, refuse
from taeda._batching.tensor import Level, front, level_of, separate, state, wrap
from taeda._C import Tensor

ops = _C.ops

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


def apply(op: Op, args: Sequence[Any]) -> Any:
    """Draw for the innermost level that this thread is in."""
    if not state.levels:
        if level_of(args) is not None:
            raise RuntimeError(ESCAPED)
        return NotImplemented
    if op.composite:
        _, p, train, *_ = args
        if op.form != "random" or not train or p == 0:
            return NotImplemented
    level = state.levels[-1]
    if level.randomness == "error":
        raise RuntimeError(_ERROR)
    outer = state.levels
    state.levels = outer[:-1]
    try:
        if level.randomness == "same":
            return _same(op, level, args)
        return _different(op, level, args)
    finally:
        state.levels = outer


def _is_at(x: Any, level: Level) -> bool:
    return separate(x, level)[1]


def _different(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Numbers of its own for each element of the batch."""
    given = list(args)
    if op.inplace:
        if not _is_at(args[0], level):
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness."
            )
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                value = front(a, level)
                missing = args[0].dim() - a.dim()
                given[i] = value.reshape(level.size, *(1,) * missing, *a.shape)
        op.call(given)
        return args[0]
    if op.name == "randperm":
        rows = [op.call(args) for _ in range(level.size)]
        return wrap(ops.stack(rows) if rows else ops.empty(0, args[0], dtype=_C.int64), level)
    rank = max((a.dim() for a in args if isinstance(a, Tensor)), default=0)
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            value = front(a, level)
            missing = rank - a.dim()
            given[i] = value.reshape(level.size, *(1,) * missing, *a.shape)
        elif op.args[i] == "size":
            given[i] = [level.size, *a]
    if op.form == "random" and rank < op.ranks[0]:
        return refuse(op, args)
    if op.name == "multinomial" and rank == 2:
        rows, columns = args[0].shape
        given[0] = given[0].reshape(level.size * rows, columns)
        return wrap(op.call(given).reshape(level.size, rows, -1), level)
    if op.name.startswith("feature"):
        flat = op.call([given[0].flatten(0, 1), *given[1:]])
        return wrap(flat.reshape(given[0].shape), level)
    result = op.call(given)
    if isinstance(result, Tensor):
        return wrap(result, level)
    return tuple(wrap(item, level) for item in result)


def _same(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """The same numbers for all elements of the batch."""
    if not any(_is_at(a, level) for a in args):
        return NotImplemented if not state.levels else op.call(args)
    self = args[0]
    if op.name == "native_dropout":
        _, mask = op.call([ops.ones_like(_first(self, level)), *args[1:]])
        scale = 1 / (1 - args[1]) if args[1] < 1 else 0.0
        return wrap(front(self, level) * mask * scale, level), wrap(
            mask.unsqueeze(0).expand(level.size, *mask.shape), level
        )
    if op.name.endswith("_like"):
        return op.call([_first(self, level), *args[1:]])
    if op.inplace and not any(_is_at(a, level) for a in args[1:]):
        drawn = op.call([ops.empty_like(_first(self, level)), *args[1:]])
        front(self, level).copy_(drawn.unsqueeze(0))
        return self
    generator = args[op.args.index("generator")] or _default_generator(args)
    return _from_one_state(op, level, args, generator)


def _first(x: Tensor, level: Level) -> Tensor:
    """A tensor of the sizes and dtype of one element."""
    value, hidden = separate(x, level)
    return ops.empty(x.shape, dtype=x.dtype, device=x.device) if hidden else value


def _default_generator(args: Sequence[Any]) -> Any:
    device = next(a.device for a in args if isinstance(a, Tensor))
    return _C._cuda_generator(device.index or 0) if device.type == "cuda" else _C.default_generator


def _from_one_state(op: Op, level: Level, args: Sequence[Any], generator: Any) -> Any:
    """Draw for each element, beginning from the same state of the generator."""
    before = generator.get_state()

    def again(*values: Any, **named: Any) -> Any:
        generator.set_state(before)
        return op.function(*values, **named)

    once = Op.__new__(Op)
    once.__dict__.update(op.__dict__)
    once.function = again
    return loop(once, level, args)
