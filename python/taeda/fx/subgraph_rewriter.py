"""`replace_pattern`: put other steps in place of those that match a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from taeda import nn

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """Where a pattern was found.

    Attributes:
        anchor: the last step of what matched.
        nodes_map: from the pattern's nodes to those of the graph; from its arguments, to values.
    """

    anchor: Node
    nodes_map: dict[Node, Argument]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule,
) -> list[Match]:
    """Replace the steps that match a pattern, wherever they are.

    What is between the first and the last of them must be used by the others alone. Places that
    overlap an earlier one are left.

    Args:
        gm: the module; its graph is changed.
        pattern: a function, whose steps are looked for; its arguments stand for any value.
        replacement: a function of as many arguments, whose steps are put there.

    Returns:
        Where it was found.

    >>> from taeda import fx
    >>> module = fx.symbolic_trace(lambda x, y: taeda.add(x, y).relu())
    >>> _ = fx.replace_pattern(module, lambda a, b: taeda.add(a, b), lambda a, b: taeda.mul(a, b))
    >>> print(module.code)
    def forward(self, x, y):
        mul = taeda.mul(x, y);  x = y = None
        relu = mul.relu();  mul = None
        return relu
    """
    wanted, other = _graph_of(pattern), _graph_of(replacement)
    inputs = wanted.find_nodes(op="placeholder")
    if len(inputs) != len(other.find_nodes(op="placeholder")):
        raise RuntimeError("replace_pattern(): pattern and replacement take other arguments")
    last = wanted.output_node().args[0]
    if not isinstance(last, Node):
        raise RuntimeError("replace_pattern(): the pattern must return one value")
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in list(gm.graph.nodes):
        found: dict[Node, Argument] = {}
        if not _matches(last, node, found) or not _is_closed(found, last):
            continue
        inside = set(_steps(found).values())
        if inside & taken:
            continue
        taken |= inside
        matches.append(Match(node, found))
    new: dict[Node, Node] = {}  # what stands in place of the ends of earlier matches
    for match in matches:
        new[match.anchor] = _replace(gm.graph, match, inputs, other, new)
    gm.recompile()
    return matches


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    if isinstance(pattern, GraphModule):
        return pattern.graph
    assert callable(pattern) or isinstance(pattern, nn.Module)
    return symbolic_trace(pattern).graph


def _matches(of: Any, at: Any, found: dict[Node, Argument]) -> bool:
    """Whether a pattern's argument is the graph's, with nodes added to `found`."""
    if isinstance(of, Node):
        if of in found:
            return found[of] is at
        if of.op == "placeholder":
            found[of] = at
            return True
        if not isinstance(at, Node) or of.op != at.op or of.target != at.target:
            return False
        found[of] = at
        return _matches((of.args, dict(of.kwargs)), (at.args, dict(at.kwargs)), found)
    if isinstance(of, tuple | list):
        same = isinstance(at, tuple | list) and len(of) == len(at)
        return same and all(_matches(a, b, found) for a, b in zip(of, at, strict=True))
    if isinstance(of, dict):
        same = isinstance(at, dict) and of.keys() == at.keys()
        return same and all(_matches(value, at[key], found) for key, value in of.items())
    return type(of) is type(at) and bool(of == at)


def _steps(found: dict[Node, Argument]) -> dict[Node, Node]:
    """What was found, without what stands for the pattern's arguments."""
    return {of: at for of, at in found.items() if of.op != "placeholder"}


def _is_closed(found: dict[Node, Argument], last: Node) -> bool:
    """Whether the values in between are used within the match alone."""
    steps = _steps(found)
    inside = set(steps.values())
    return all(set(at.users) <= inside for of, at in steps.items() if of is not last)


def _replace(
    graph: Graph, match: Match, inputs: list[Node], other: Graph, new: dict[Node, Node]
) -> Node:
    given = [match.nodes_map[node] for node in inputs]
    given = [new.get(value, value) if isinstance(value, Node) else value for value in given]
    copies = dict(zip(other.find_nodes(op="placeholder"), given, strict=True))
    with graph.inserting_before(match.anchor):
        result = graph.graph_copy(other, copies)
    match.anchor.replace_all_uses_with(result)
    steps = set(_steps(match.nodes_map).values())
    for node in reversed(graph.nodes):
        if node in steps and not node.users:
            graph.erase_node(node)
    assert isinstance(result, Node)
    return result
