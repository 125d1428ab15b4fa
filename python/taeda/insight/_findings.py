"""Findings about parameters: what the optimizer, the model and the loss each know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taeda.optim import optimizer as optimizers

from ._context import Context, Finding

Rule = Callable[[Context], Iterator[Finding]]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in backquotes, the first few of them.

    >>> listed(["a", "b"])
    '`a`, `b`'
    """
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def expression(context: Context, parameters: Sequence[Any]) -> tuple[str, str]:
    """How to write some parameters of the model: as an iterable, and as what to freeze."""
    names = [context.name(p) for p in parameters]
    common: list[str] = []
    for column in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    module: Any = (
        context.model.get_submodule(".".join(common)) if context.model is not None else None
    )
    chosen = {id(p) for p in parameters}
    if module is not None and all(id(p) in chosen for p in module.parameters()):
        path = _written(common)
        return f"{path}.parameters()", path
    written = [_written(name.split(".")) for name in names[:3]]
    more = ", ..." if len(names) > 3 else ""
    return f"[{', '.join(written)}{more}]", written[0]


def _written(parts: Sequence[str]) -> str:
    return "model" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def membership(context: Context) -> Iterator[Finding]:
    """Parameters that only one of the model and the optimizers has."""
    if context.model is None or not context.optimizers:
        return
    missing = [p for p in context.trainable if id(p) not in context.held]
    foreign = [h.parameter for key, h in context.held.items() if key not in context.named]
    strangers = [p for p in foreign if not context.graph.reaches(p)]
    replaced, lost = [], []
    for parameter in missing:
        twin = next((f for f in strangers if f.shape == parameter.shape), None)
        if twin is None:
            lost.append(parameter)
        else:
            replaced.append(parameter)
            strangers = [f for f in strangers if f is not twin]
    make = context.make_optimizer()
    one = len(context.optimizers) == 1
    lacking, having = (
        ("The optimizer does not hold", "The optimizer holds")
        if one
        else ("No optimizer holds", "The optimizers hold")
    )
    if replaced:
        names = [context.name(p) for p in replaced]
        yield Finding(
            "replaced",
            f"{having} other tensors in place of {listed(names)}: the model's were "
            "replaced after the optimizer was made, and step() does not change them.",
            f"{make}  # after the last change to the model's layers",
            tuple(names),
        )
    if lost:
        names = [context.name(p) for p in lost]
        held, whole = expression(context, lost)
        everything = len(lost) == len(context.trainable)
        yield Finding(
            "partial",
            f"{lacking} {listed(names)}: step() never changes "
            f"{'them' if len(names) > 1 else 'it'}.",
            make
            if everything and one
            else f'optimizer.add_param_group({{"params": {held}}})'
            f"  # or {whole}.requires_grad_(False)",
            tuple(names),
        )
    if strangers:
        names = [context.name(p) for p in strangers]
        yield Finding(
            "foreign",
            f"{having} {len(names)} parameters that the model does not have and the "
            f"loss does not reach: {listed(names)}.",
            make,
            tuple(names),
        )
    outside = [p for p in foreign if context.graph.reaches(p)]
    if outside:
        names = [context.name(p) for p in outside]
        yield Finding(
            "outside",
            f"The optimizer trains {listed(names)}, which the model does not register.",
            names=tuple(names),
            level="note",
        )


def unreached(context: Context) -> Iterator[Finding]:
    """Parameters that the loss does not depend on, and where the way to them is cut."""
    graph = context.graph
    if not graph.leaves:
        return
    lost = [p for p in context.trainable if not graph.reaches(p)]
    if not lost:
        return
    index = graph.module_index
    first = next((op for op in reversed(list(graph.running())) if op.module is not None), None)
    before = []
    if first is not None and first.module is not None and graph.root is not None:
        start = index.order[first.module]
        before = [p for p in lost if index.order[index.owners[id(p)][0][0]] < start]
    if before and first is not None:
        names = [context.name(p) for p in before]
        last = index.owners[id(before[-1])][0][0]
        yield Finding(
            "cut",
            f"The graph is cut between `{last}` and `{first.module}` ({first.name}), whose input "
            f"requires no gradient: {listed(names)} cannot learn.",
            f"# between `{last}` and `{first.module}`: remove .detach(), .data, .item(), NumPy or "
            "`with taeda.no_grad():`",
            tuple(names),
        )
    others = [p for p in lost if not any(p is b for b in before)]
    if others:
        names = [context.name(p) for p in others]
        yield Finding(
            "unreached",
            f"The loss does not depend on {listed(names)}: backward() gives no gradient.",
            f"{expression(context, others)[1]}.requires_grad_(False)  # or use it in forward()",
            tuple(names),
        )


def unregistered(context: Context) -> Iterator[Finding]:
    """Parameters in the graph that neither the model nor the optimizer knows."""
    from taeda.nn import Parameter

    if context.model is None:
        return
    others = {  # of other models, as in adversarial training
        id(p)
        for optimizer in list(optimizers.alive)
        for group in optimizer.__dict__.get("param_groups", [])
        for p in group["params"]
    }
    found = [
        op.leaf
        for key, op in context.graph.leaves.items()
        if isinstance(op.leaf, Parameter) and key not in context.named and key not in others
    ]
    if found:
        shapes = ", ".join(str(tuple(p.shape)) for p in found[:4])
        yield Finding(
            "unregistered",
            f"The loss depends on {len(found)} parameters that the model does not register "
            f"(shapes {shapes}): a plain list, dict or tuple hides them.",
            "self.layers = taeda.nn.ModuleList(layers)  # in place of a list; ParameterList, "
            "ModuleDict likewise",
            tuple(str(tuple(p.shape)) for p in found),
        )


def frozen(context: Context) -> Iterator[Finding]:
    """Parameters that require no gradient."""
    if context.model is not None and context.named and not context.trainable:
        yield Finding(
            "all_frozen",
            "No parameter of the model requires a gradient: nothing can learn.",
            "model.requires_grad_(True)",
        )
        return
    still = [h.parameter for h in context.held.values() if not h.parameter.requires_grad]
    if still:
        names = [context.name(p) for p in still]
        yield Finding(
            "frozen",
            f"The optimizer holds {listed(names)}, which requires no gradient and stays as it is.",
            f"{_thawed(context, still)}.requires_grad_(True)  # to train; else make the optimizer "
            "of [p for p in model.parameters() if p.requires_grad]",
            tuple(names),
        )


def _thawed(context: Context, parameters: Sequence[Any]) -> str:
    own = [p for p in parameters if id(p) in context.named]
    return expression(context, own)[1] if own else "parameter"


def tied(context: Context) -> Iterator[Finding]:
    """One parameter under several names, or several times in the optimizer."""
    for _, names in context.named.values():
        if len(names) > 1:
            yield Finding(
                "tied",
                f"{listed(names)} are one tensor: its gradient is the sum over all its uses.",
                names=tuple(names),
                level="note",
            )
    groups: list[Any] = [
        p for optimizer in context.optimizers for g in optimizer.param_groups for p in g["params"]
    ]
    if len({id(p) for p in groups}) < len(groups):
        twice = {id(p): p for p in groups if sum(q is p for q in groups) > 1}
        names = [context.name(p) for p in twice.values()]
        many = len(context.optimizers) > 1
        yield Finding(
            "twice",
            f"The optimizer{'s hold' if many else ' holds'} {listed(names)} more than once: each "
            "step changes it repeatedly.",
            context.make_optimizer() + "  # parameters() gives each once",
            tuple(names),
        )


def settings(context: Context) -> Iterator[Finding]:
    """Learning rates with which nothing, or too much, happens."""
    groups = [
        (optimizer, i, group)
        for optimizer in context.optimizers
        for i, group in enumerate(optimizer.param_groups)
    ]
    for optimizer, i, group in groups:
        lr = group.get("lr")
        if lr is not None and float(lr) == 0:
            which = "the optimizer" if len(context.optimizers) == 1 else type(optimizer).__name__
            yield Finding(
                "lr_zero",
                f"Group {i} of {which} has a learning rate of 0: step() changes nothing.",
                f'optimizer.param_groups[{i}]["lr"] = 1e-3',
                level="note",
            )


RULES: tuple[Rule, ...] = (membership, unreached, unregistered, frozen, tied, settings)
