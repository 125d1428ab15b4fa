"""Rules for operations along dimensions given by arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.dispatch import Op, Rule, check_target, loop, refuse, wrapped
from taeda._batching.tensor import Level, flattened, front, wrap
from taeda._C import Tensor

ops = _C.ops

# Names of dimension arguments in schemas.
DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "dimension")


def shifted(dim: Any, rank: int) -> Any:
    """Shift one or several dimensions, of `rank`, by the hidden one in front."""
    if isinstance(dim, (tuple, list)):
        return [shifted(d, rank) for d in dim]
    n = max(rank, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n + 1


def along(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Shift the dimensions; every tensor gets the hidden one in front.

    A tensor without dimensions counts as one with a single element.
    """
    if op.inplace:
        check_target(op, level, args)
    given, rank = list(args), rank_of(op, args)
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            value = front(a, level)
            given[i] = value if rank or a.dim() else value.unsqueeze(1)
        elif op.args[i] == "sizes":  # of the result
            if not rank:
                return loop(op, level, args)
            given[i] = [level.size, *a]
        elif op.args[i] in DIMS and a is not None:
            given[i] = shifted(a, rank)
    result = op.call(given)
    if op.inplace:
        return args[0]
    if rank:
        return wrapped(result, level)
    if isinstance(result, Tensor):
        return wrap(_without_one(result), level)
    return tuple(wrap(_without_one(item), level) for item in result)


def rank_of(op: Op, args: Sequence[Any]) -> int:
    """The rank that dimension arguments refer to."""
    sizes = op.position("sizes")
    return args[0].dim() if sizes is None else len(args[sizes])


def _without_one(value: Tensor) -> Tensor:
    return value.squeeze(1) if value.dim() > 1 else value


def strictly_along(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """As `along`, for views, where a tensor without dimensions is an error."""
    if not rank_of(op, args):
        name = op.name.removesuffix("_copy")
        raise (RuntimeError if name in ("split", "split_with_sizes") else IndexError)(
            f"{name}() cannot be applied to a 0-dim tensor."
        )
    return along(op, level, args)


def reduction(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Reductions over the given dimensions, or over all but the hidden one."""
    x, position = args[0], op.position("dim")
    value, rank = front(x, level), x.dim()
    if position is None:
        return _of_all(op, level, args, flattened(value))
    if args[position] is not None and args[position] != ():
        return along(op, level, args)
    given = list(args)
    keep = op.position("keepdim")
    kept = keep is not None and args[keep]
    if op.kinds[position].startswith("int["):
        given[0] = value if rank else value.unsqueeze(1)
        given[position] = list(range(1, max(rank, 1) + 1))
        if not rank and keep is not None:
            given[keep] = False
        return wrapped(op.call(given), level)
    given[0] = flattened(value)
    given[position] = 1
    if keep is not None:
        given[keep] = False
    result = wrapped(op.call(given), level)
    return result.reshape([1] * rank) if kept else result


def _of_all(op: Op, level: Level, args: Sequence[Any], flat: Tensor) -> Any:
    """An overload without `dim`, computed by the one with `dim`."""
    if op.name in ("max", "min"):
        if not flat.size(1):
            raise RuntimeError(
                f"{op.name}(): Expected reduction dim to be specified for "
                "input.numel() == 0. Specify the reduction dim with the 'dim' argument."
            )
        result = (ops.amax if op.name == "max" else ops.amin)(flat, [1])
    elif op.name in ("median", "nanmedian") and not flat.size(1):
        result = flat.new_full((level.size,), float("nan"))
    else:
        result = op.function(flat, 1, *args[1:])
    return wrap(result if isinstance(result, Tensor) else result[0], level)


def leading(*core: int) -> Rule:
    """Return a rule for operations that take any number of leading batch dimensions.

    Args:
        core: the number of non-batch dimensions of each tensor argument, in order.
    """

    def computed(op: Op, level: Level, args: Sequence[Any]) -> Any:
        if op.inplace:
            check_target(op, level, args)
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        own = {i: core[min(k, len(core) - 1)] for k, i in enumerate(positions)}
        if any(args[i].dim() < own[i] for i in positions):
            return refuse(op, args)
        batch = max(args[i].dim() - own[i] for i in positions)
        given = list(args)
        for i in positions:
            value = front(args[i], level)
            missing = batch - (args[i].dim() - own[i])
            if missing:
                sizes = value.shape
                value = value.reshape(sizes[0], *(1,) * missing, *sizes[1:])
            given[i] = value
        result = op.call(given)
        return args[0] if op.inplace else wrapped(result, level)

    return computed


def folded(spatial: int) -> Rule:
    """Return a rule for operations on (examples, channels, *spatial) tensors.

    The hidden dimension is folded into that of the examples, or replaces a missing one.
    """

    def computed(op: Op, level: Level, args: Sequence[Any]) -> Any:
        dims = spatial or args[op.args.index("spatial")]
        given = list(args)
        examples = None
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                if a.dim() not in (dims + 1, dims + 2):
                    return refuse(op, args)
                value = front(a, level)
                if a.dim() == dims + 2:
                    examples = a.size(0)
                    value = value.reshape(level.size * examples, *a.shape[1:])
                given[i] = value
            elif op.args[i] == "sizes":
                given[i] = [level.size * a[0], *a[1:]] if len(a) == dims + 2 else [level.size, *a]
        result = op.call(given)
        if examples is None:
            return wrapped(result, level)
        if isinstance(result, Tensor):
            return wrap(result.reshape(level.size, examples, *result.shape[1:]), level)
        return tuple(wrap(r.reshape(level.size, examples, *r.shape[1:]), level) for r in result)

    return computed
