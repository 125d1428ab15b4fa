"""Findings about parameters: what the optimizer, the model and the loss each know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taeda.optim import optimizer as optimizers

from ._scene import Finding, Scene

Rule = Callable[[Scene], Iterator[Finding]]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in backquotes, the first few of them.

    >>> listed(["a", "b"])
    '`a`, `b`'
    """
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def expression(scene: Scene, parameters: Sequence[Any]) -> tuple[str, str]:
    """How to write some parameters of the model: as an iterable, and as what to freeze."""
    names = [scene.name(p) for p in parameters]
    common: list[str] = []
    for column in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    module: Any = scene.model.get_submodule(".".join(common)) if scene.model is not None else None
    chosen = {id(p) for p in parameters}
    if module is not None and all(id(p) in chosen for p in module.parameters()):
        path = _written(common)
        return f"{path}.parameters()", path
    written = [_written(name.split(".")) for name in names[:3]]
    more = ", ..." if len(names) > 3 else ""
    return f"[{', '.join(written)}{more}]", written[0]


def _written(parts: Sequence[str]) -> str:
    return "model" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def membership(scene: Scene) -> Iterator[Finding]:
    """Parameters that only one of the model and the optimizer has."""
    if scene.model is None or scene.optimizer is None:
        return
    missing = [p for p in scene.trainable if id(p) not in scene.held]
    foreign = [h.parameter for key, h in scene.held.items() if key not in scene.named]
    strangers = [p for p in foreign if not scene.graph.reaches(p)]
    replaced, lost = [], []
    for parameter in missing:
        twin = next((f for f in strangers if f.shape == parameter.shape), None)
        if twin is None:
            lost.append(parameter)
        else:
            replaced.append(parameter)
            strangers = [f for f in strangers if f is not twin]
    make = scene.make_optimizer()
    if replaced:
        names = [scene.name(p) for p in replaced]
        yield Finding(
            "replaced",
            f"The optimizer holds other tensors in place of {listed(names)}: the model's were "
            "replaced after the optimizer was made, and step() does not change them.",
            f"{make}  # after the last change to the model's layers",
            tuple(names),
        )
    if lost:
        names = [scene.name(p) for p in lost]
        held, whole = expression(scene, lost)
        everything = len(lost) == len(scene.trainable)
        yield Finding(
            "partial",
            f"The optimizer does not hold {listed(names)}: step() never changes "
            f"{'them' if len(names) > 1 else 'it'}.",
            make
            if everything
            else f'optimizer.add_param_group({{"params": {held}}})'
            f"  # or {whole}.requires_grad_(False)",
            tuple(names),
        )
    if strangers:
        names = [scene.name(p) for p in strangers]
        yield Finding(
            "foreign",
            f"The optimizer holds {len(names)} parameters that the model does not have and the "
            f"loss does not reach: {listed(names)}.",
            make,
            tuple(names),
        )
    outside = [p for p in foreign if scene.graph.reaches(p)]
    if outside:
        names = [scene.name(p) for p in outside]
        yield Finding(
            "outside",
            f"The optimizer trains {listed(names)}, which the model does not register.",
            names=tuple(names),
            level="note",
        )


def unreached(scene: Scene) -> Iterator[Finding]:
    """Parameters that the loss does not depend on, and where the way to them is cut."""
    graph = scene.graph
    if not graph.leaves:
        return
    lost = [p for p in scene.trainable if not graph.reaches(p)]
    if not lost:
        return
    places = graph.places
    first = next((op for op in reversed(list(graph.running())) if op.module is not None), None)
    before = []
    if first is not None and first.module is not None and graph.root is not None:
        start = places.order[first.module]
        before = [p for p in lost if places.order[places.owners[id(p)][0][0]] < start]
    if before and first is not None:
        names = [scene.name(p) for p in before]
        last = places.owners[id(before[-1])][0][0]
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
        names = [scene.name(p) for p in others]
        yield Finding(
            "unreached",
            f"The loss does not depend on {listed(names)}: backward() gives no gradient.",
            f"{expression(scene, others)[1]}.requires_grad_(False)  # or use it in forward()",
            tuple(names),
        )


def unregistered(scene: Scene) -> Iterator[Finding]:
    """Parameters in the graph that neither the model nor the optimizer knows."""
    from taeda.nn import Parameter

    if scene.model is None:
        return
    others = {  # of other models, as in adversarial training
        id(p)
        for optimizer in list(optimizers.alive)
        for group in optimizer.__dict__.get("param_groups", [])
        for p in group["params"]
    }
    found = [
        op.leaf
        for key, op in scene.graph.leaves.items()
        if isinstance(op.leaf, Parameter) and key not in scene.named and key not in others
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


def frozen(scene: Scene) -> Iterator[Finding]:
    """Parameters that require no gradient."""
    if scene.model is not None and scene.named and not scene.trainable:
        yield Finding(
            "all_frozen",
            "No parameter of the model requires a gradient: nothing can learn.",
            "model.requires_grad_(True)",
        )
        return
    still = [h.parameter for h in scene.held.values() if not h.parameter.requires_grad]
    if still:
        names = [scene.name(p) for p in still]
        yield Finding(
            "frozen",
            f"The optimizer holds {listed(names)}, which requires no gradient and stays as it is.",
            f"{_thawed(scene, still)}.requires_grad_(True)  # to train; else make the optimizer of "
            "[p for p in model.parameters() if p.requires_grad]",
            tuple(names),
        )


def _thawed(scene: Scene, parameters: Sequence[Any]) -> str:
    own = [p for p in parameters if id(p) in scene.named]
    return expression(scene, own)[1] if own else "parameter"


def tied(scene: Scene) -> Iterator[Finding]:
    """One parameter under several names, or several times in the optimizer."""
    for _, names in scene.named.values():
        if len(names) > 1:
            yield Finding(
                "tied",
                f"{listed(names)} are one tensor: its gradient is the sum over all its uses.",
                names=tuple(names),
                level="note",
            )
    if scene.optimizer is None:
        return
    groups: list[Any] = [p for g in scene.optimizer.param_groups for p in g["params"]]
    twice = {id(p): p for p in groups if sum(q is p for q in groups) > 1} if groups else {}
    if len({id(p) for p in groups}) < len(groups):
        names = [scene.name(p) for p in twice.values()]
        yield Finding(
            "twice",
            f"The optimizer holds {listed(names)} more than once: each step changes it repeatedly.",
            scene.make_optimizer() + "  # parameters() gives each once",
            tuple(names),
        )


def settings(scene: Scene) -> Iterator[Finding]:
    """Learning rates with which nothing, or too much, happens."""
    if scene.optimizer is None:
        return
    for i, group in enumerate(scene.optimizer.param_groups):
        lr = group.get("lr")
        if lr is not None and float(lr) == 0:
            yield Finding(
                "lr_zero",
                f"Group {i} of the optimizer has a learning rate of 0: step() changes nothing.",
                f'optimizer.param_groups[{i}]["lr"] = 1e-3',
                level="note",
            )


RULES: tuple[Rule, ...] = (membership, unreached, unregistered, frozen, tied, settings)
