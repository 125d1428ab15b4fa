"""Checks of `strict` that look at the graph and at all parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taeda.nn.parameter import Parameter, is_lazy
from taeda.optim import optimizer as optimizers

from ._context import Finding
from ._findings import listed
from ._mistakes import FIXES

if TYPE_CHECKING:
    from ._graph import Graph


def leaves_of(optimizer: Any) -> list[Any]:
    """The parameters of an optimizer that backward passes fill."""
    groups = optimizer.__dict__.get("param_groups", [])
    return [p for group in groups for p in group["params"] if p.is_leaf or p.retains_grad]


def size_of(parameter: Any) -> float:
    """How many elements a parameter has; those of lazy modules may not know yet."""
    return float("inf") if is_lazy(parameter) else parameter.numel()


def shares(module: Any, own: set[int]) -> bool:
    """Whether a module has some of the parameters with the ids `own`."""
    return any(id(p) in own for p in module.parameters())


def coverage(graph: Graph, parameters: list[Any], models: list[Any]) -> Iterator[Finding]:
    """Parameters that the loss reaches and no optimizer holds.

    Args:
        graph: of the loss.
        parameters: those of the optimizer that steps.
        models: the modules that were called.
    """
    held = {
        id(p)
        for other in list(optimizers.alive)
        for group in other.__dict__.get("param_groups", [])
        for p in group["params"]
    }
    names: dict[int, tuple[str, Any]] = {}
    for model in models:
        for name, p in model.named_parameters():
            if isinstance(p, Parameter):  # what a functional model computes with is no such
                names.setdefault(id(p), (name, p))
    lost = [
        (name, p)
        for key, (name, p) in names.items()
        if key not in held and p.requires_grad and key in graph.leaves
    ]
    idle = [p for p in parameters if p.grad is None and id(p) not in names]
    replaced: list[str] = []
    partial: list[str] = []
    for name, parameter in lost:
        twin = next((p for p in idle if p.shape == parameter.shape), None)
        (partial if twin is None else replaced).append(name)
        idle = [p for p in idle if p is not twin]
    if replaced:
        yield Finding(
            "replaced",
            f"step(): the optimizer holds other tensors in place of {listed(replaced)}, which were "
            "replaced after it was made",
            "optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)  # after the last change to "
            "the model's layers",
            tuple(replaced),
        )
    if partial:
        yield Finding(
            "partial",
            f"step(): the loss reaches {listed(partial)}, which no optimizer holds",
            "optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)  # all of them; or "
            "requires_grad_(False) for what is not to learn",
            tuple(partial),
        )


def region_of(graph: Graph, bad: list[Any]) -> str:
    """Words for where gradients stop being finite, when the graph has been freed.

    Gradients flow from the loss: the operation that spoiled them is after the last parameter
    whose gradient is finite, and not after the first one whose gradient is not.
    """
    spoiled = {id(p) for p in bad}
    between: list[Any] = []
    for op in graph.running():
        leaves = [graph.ops[k].leaf for k in op.inputs if k is not None]
        own = [leaf for leaf in leaves if leaf is not None]
        if any(id(leaf) in spoiled for leaf in own):
            between.append(op)
            break
        between = [] if own else [*between, op]
    names = [op.name for op in between]
    known = [name for name in names if name.rpartition("_")[2] in FIXES]
    if known:
        return f"{known[-1]} is where they first arise"
    return f"they first arise in one of {', '.join(names)}" if names else ""
