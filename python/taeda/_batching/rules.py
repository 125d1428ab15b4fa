"""Gives the dispatcher the function that computes an operation on batched tensors."""

from __future__ import annotations

from typing import Any

from taeda._batching import custom, random, table
from taeda._batching.dispatch import ESCAPED, Op
from taeda._batching.tensor import level_of, state

__all__ = ["make_rule"]


def make_rule(name: str, schema: str, function: Any, traits: dict[str, Any]) -> Any:
    """Return a function of the operation's arguments; it may give NotImplemented.

    In that case the operation runs as it is: it calls others, which are dispatched in turn, or it
    uses only shapes and dtypes.
    """
    op = Op(name, schema, function, traits)
    if any(kind.startswith("Generator") for kind in op.kinds):
        return lambda args: random.apply(op, args)
    computed = custom.from_library if "::" in name else table.rule_for(op)

    def apply(args: tuple[Any, ...]) -> Any:
        level = level_of(args)
        if level is None:
            return NotImplemented
        if level not in state.running:
            raise RuntimeError(ESCAPED)
        outer = state.levels
        state.levels = outer[: level.index]
        try:
            return computed(op, level, args)
        finally:
            state.levels = outer

    return apply
