"""Operations of a graph folded into groups, one for each box of a picture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._graph import LOSS, Graph, Op, Shape
from ._module_index import REARRANGING

if TYPE_CHECKING:
    from ._context import Context

MOST = 14  # boxes that are readable on a page


@dataclass
class Group:
    """Operations that one box stands for.

    Attributes:
        key: a number.
        path: of the module that they are in; "loss" for those after the model.
        kind: the module's class; empty for operations that the model itself does.
        ops: from the first to the last.
        parameters: those that they use.
        has_input: data come in that need no gradient.
    """

    key: int
    path: str
    kind: str
    ops: list[Op] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)
    has_input: bool = False

    @property
    def title(self) -> str:
        """The box's heading."""
        if self.path == LOSS or not self.path:
            return self.path or self.kind or self.ops[0].name
        return f"{self.path}: {self.kind}" if self.kind else self.path

    def words(self, most: int = 36, rows: int = 2) -> list[str]:
        """The operations in lines: in order of first use, with those that only rearrange last."""
        counts = Counter(op.name for op in self.ops)
        names = sorted(counts, key=lambda name: name in REARRANGING)
        words = [f"{name} x{counts[name]}" if counts[name] > 1 else name for name in names]
        lines: list[str] = []
        for i, word in enumerate(words):
            if lines and len(lines[-1]) + 3 + len(word) <= most:
                lines[-1] += f" · {word}"
            elif len(lines) < rows:
                lines.append(word)
            else:
                lines[-1] += f" · +{len(words) - i}"
                break
        return [] if lines == [self.title] else lines


@dataclass
class Link:
    """Values that flow from a group to another, with their shapes."""

    start: int
    stop: int
    shapes: list[Shape] = field(default_factory=list)


def _path_at(op: Op, depth: int) -> str:
    if op.module is None:
        return LOSS
    return ".".join(op.module.split(".")[:depth]) if op.module else ""


def fold(context: Context, depth: int | None = None) -> tuple[list[Group], list[Link]]:
    """Groups and links; with `depth` None, as deep as fits on a page."""
    graph = context.graph
    if depth is not None:
        return _folded(context, depth)
    deepest = max((op.module.count(".") + 1 for op in graph.running() if op.module), default=0)
    for level in range(deepest, 1, -1):
        groups, links = _folded(context, level)
        if len(groups) <= MOST:
            return groups, links
    return _folded(context, 1)


def _folded(context: Context, depth: int) -> tuple[list[Group], list[Link]]:
    graph = context.graph
    weights = _weights_only(graph)
    leader: dict[int, int] = {}

    def find(key: int) -> int:
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    running = [op for op in graph.running() if op.key not in weights]
    paths = {op.key: _path_at(op, depth) for op in running}
    opened = {
        "",
        *(".".join(p.split(".")[:i]) for p in paths.values() for i in range(p.count(".") + 1)),
    }
    for op in running:
        inputs = [key for key in op.inputs if key in paths]
        same = [key for key in inputs if paths[key] == paths[op.key]]
        # Where a module's parts are drawn, what it does itself may stand before and after them.
        if len(same) == len(inputs) or paths[op.key] not in opened:
            for near in same:
                leader[find(op.key)] = find(near)
    groups: dict[int, Group] = {}
    modules = graph.module_index.modules
    for op in reversed(running):
        key = find(op.key)
        path = paths[op.key]
        if key not in groups:
            kind = type(modules[path]).__name__ if path in modules and path else ""
            groups[key] = Group(key, path, kind)
        group = groups[key]
        group.ops.append(op)
        group.has_input |= None in op.inputs[:1] or not op.inputs
        for leaf in _leaves(graph, op, weights):
            if not any(leaf is p for p in group.parameters):
                group.parameters.append(leaf)
    links: dict[tuple[int, int], Link] = {}
    for op in reversed(running):
        stop = find(op.key)
        for source, number in zip(op.inputs, op.numbers, strict=True):
            if source is None or source not in paths or (start := find(source)) == stop:
                continue
            link = links.setdefault((start, stop), Link(start, stop))
            shape = graph.ops[source].out_shapes.get(number)
            if shape is not None and shape not in link.shapes:
                link.shapes.append(shape)
    return _sorted(groups, list(links.values()))


def _sorted(groups: dict[int, Group], links: list[Link]) -> tuple[list[Group], list[Link]]:
    """Each group after those that lead to it; links that make a circle are left out."""
    waiting, done = list(groups), {}
    while waiting:
        free = [k for k in waiting if all(x.start in done for x in links if x.stop == k)]
        key = (free or waiting)[0]
        waiting.remove(key)
        links = [x for x in links if x.stop != key or x.start in done]
        done[key] = groups[key]
        if not any(x.stop == key for x in links):
            groups[key].has_input = True
    return list(done.values()), links


def _weights_only(graph: Graph) -> set[int]:
    """Leaves, and what is computed from the model's parameters alone."""
    alone: set[int] = set()
    for key in reversed(graph.order):
        op = graph.ops[key]
        inputs = [k for k in op.inputs if k is not None]
        view = len(op.inputs) == 1 and op.name in REARRANGING
        if op.leaf is not None or (view and inputs and all(k in alone for k in inputs)):
            alone.add(key)
    return alone


def _leaves(graph: Graph, op: Op, weights: set[int]) -> list[Any]:
    found = []
    pending = [k for k in op.inputs if k is not None and k in weights]
    while pending:
        other = graph.ops[pending.pop(0)]
        if other.leaf is not None:
            found.append(other.leaf)
        pending += [k for k in other.inputs if k is not None]
    return found
