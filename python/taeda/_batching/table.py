"""Finds the batching rule of each operation. Its row in csrc/ops tells it, if one of these applies:

- what is composed of other operations (`composite`) runs as it is: its parts come here;
- what is computed element by element (`elementwise`) has the rule `pointwise`;
- what draws random numbers (takes a `generator`) has that of the module `random`;
- the trait `vmap` names one of the forms below.

A rule of its own is a function with the decorator `rule`. Anything else runs once for each element
of the batch, and says so in a warning. An in-place form has the rule of the form that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda._batching import along, indexing, matrix, nn, pointwise, shape
from taeda._batching.dispatch import RULES, WHOLE, Op, Rule, as_it_is, loop, one_by_one, rule
from taeda._batching.tensor import Level, separate


def dynamic(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Refuse: the shape of the result depends on the elements."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over {op.name}."
    )


@rule("allclose", "equal")
def no_tensor(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Refuse: the result is a Python number."""
    raise RuntimeError(
        f"Batching rule not implemented for {op.name}. We could not generate a fallback: its "
        "result is not a Tensor."
    )


def loop_if_batched(*names: str) -> Rule:
    """Return a rule that runs the composite, unless an argument of these names is batched."""

    def computed(op: Op, level: Level, args: Sequence[Any]) -> Any:
        for name in names:
            position = op.position(name)
            if position is not None and separate(args[position], level)[1]:
                return loop(op, level, args)
        return NotImplemented

    return computed


rule("istft", "quantile", "nanquantile", whole=True)(loop_if_batched("window", "q"))


@rule("one_hot")
def one_hot(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`one_hot`, which must be told the number of classes."""
    if args[1] < 0:
        args[0].item()  # raises
    return shape.direct(op, level, args)


# These hold nothing but rules of single operations, registered by their import.
_OWN_RULES = (indexing, matrix, nn)

# By the name of a form (`Vmap` in csrc/ops/core/traits.h); those of the second table take ranks.
FORMS: dict[str, Rule] = {
    "elementwise": pointwise.pointwise,
    "loss": pointwise.loss,
    "direct": shape.direct,
    "new": shape.new,
    "reduction": along.reduction,
    "along": along.along,
    "strictly_along": along.strictly_along,
    "loop": loop,
    "one_by_one": one_by_one,
    "dynamic": dynamic,
    "as_it_is": as_it_is,
}
RANKED: dict[str, Callable[..., Rule]] = {"leading": along.leading, "folded": along.folded}


def rule_for(op: Op) -> Rule:
    """The rule of an operation."""
    if op.form in RANKED:
        return RANKED[op.form](*op.ranks)
    if op.form:
        return FORMS[op.form]
    if op.composite:
        return WHOLE.get(op.name, as_it_is)
    if op.name in RULES:
        return RULES[op.name]
    return pointwise.pointwise if op.elementwise else one_by_one
