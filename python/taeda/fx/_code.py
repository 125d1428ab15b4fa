"""Python code for a graph: the ``forward`` of its `GraphModule`."""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
import math
import operator
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda

from .node import Node

if TYPE_CHECKING:
    from .graph import Graph

# Functions of `operator` as they are written.
_WRITTEN: dict[Any, str] = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.truediv: "{} / {}",
    operator.floordiv: "{} // {}",
    operator.mod: "{} % {}",
    operator.pow: "{} ** {}",
    operator.matmul: "{} @ {}",
    operator.lshift: "{} << {}",
    operator.rshift: "{} >> {}",
    operator.and_: "{} & {}",
    operator.or_: "{} | {}",
    operator.xor: "{} ^ {}",
    operator.eq: "{} == {}",
    operator.ne: "{} != {}",
    operator.lt: "{} < {}",
    operator.gt: "{} > {}",
    operator.le: "{} <= {}",
    operator.ge: "{} >= {}",
    operator.getitem: "{}[{}]",
    operator.neg: "-{}",
    operator.pos: "+{}",
    operator.invert: "~{}",
}


@dataclass
class PythonCode:
    """The code of a graph.

    Attributes:
        src: its text, which defines ``forward``.
        globals: the objects that it takes by name.
    """

    src: str
    globals: dict[str, Any]


class Names:
    """Names that are identifiers, each given once.

    Args:
        taken: names that are not free.
    """

    def __init__(self, taken: Any = ()) -> None:
        self._taken = set(taken)
        self._of: dict[int, tuple[str, Any]] = {}

    def new(self, candidate: str, of: Any = None) -> str:
        """A name like ``candidate``; the same again for the same object."""
        if of is not None and id(of) in self._of:
            return self._of[id(of)][0]
        name = re.sub("[^0-9a-zA-Z_]+", "_", candidate)
        if not name or name[0].isdigit():
            name = f"_{name}"
        base = re.sub(r"_\d+$", "", name) or name
        number = 0
        while name in self._taken or keyword.iskeyword(name) or name in vars(builtins):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        if of is not None:
            self._of[id(of)] = name, of
        return name


def snake_case(text: str) -> str:
    """``MaxPool`` as ``max_pool``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", text).lower()


class Writer:
    """Writes the code of a graph.

    Args:
        graph: the graph.
        root_module: how the code calls the module that it is a method of.
    """

    def __init__(self, graph: Graph, root_module: str) -> None:
        self.graph, self.root = graph, root_module
        self.globals: dict[str, Any] = {}
        names = [node.name for node in graph.nodes]
        self._names = Names([*names, root_module, "taeda"])

    def code(self) -> PythonCode:
        """All of it."""
        parameters: list[str] = []
        lines: list[str] = []
        last = self._last_uses()
        for node in self.graph.nodes:
            if node.op == "placeholder":
                parameters.append(self._parameter(node))
                star = str(node.target).lstrip("*")
                if star != node.name:
                    lines.append(f"{node.name} = {star}")
            elif node.op == "output":
                lines.append(f"return {self._value(node.args[0])}")
            else:
                line = f"{node.name} = {self._expression(node)}"
                done = [n.name for n in last.get(node, ())]
                if done:
                    line += f";  {' = '.join(done)} = None"
                lines.append(line)
        body = "\n".join(f"    {line}" for line in lines or ["pass"])
        head = ", ".join([self.root, *parameters])
        return PythonCode(f"def forward({head}):\n{body}", self.globals)

    def _last_uses(self) -> dict[Node, list[Node]]:
        """For each node, those whose values are not needed after it."""
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(self.graph.nodes):
            unused = not user.users and user.op not in ("placeholder", "output")
            for node in [*user.all_input_nodes, *([user] if unused else [])]:
                if node not in seen:
                    seen.add(node)
                    last.setdefault(user, []).append(node)
        return last

    def _parameter(self, node: Node) -> str:
        text = str(node.target)
        if node.type is not None:
            text += f": {self._global(node.type)}"
        if node.args:
            text += f" = {self._value(node.args[0])}"
        return text

    def _expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return self._attribute(self.root, str(node.target))
        if node.op == "call_module":
            return f"{self._attribute(self.root, str(node.target))}({self._arguments(node)})"
        if node.op == "call_method":
            first = self._operand(node.args[0])
            rest = self._arguments(node, 1)
            return f"{self._attribute(first, str(node.target))}({rest})"
        written = _WRITTEN.get(node.target) if not node.kwargs else None
        if written is not None and len(node.args) == written.count("{}"):
            if node.target is operator.getitem:
                return f"{self._operand(node.args[0])}[{self._value(node.args[1])}]"
            return written.format(*map(self._operand, node.args))
        if node.target is getattr and len(node.args) == 2 and _is_name(node.args[1]):
            return f"{self._operand(node.args[0])}.{node.args[1]}"
        return f"{self._global(node.target)}({self._arguments(node)})"

    def _arguments(self, node: Node, start: int = 0) -> str:
        given = [self._value(a) for a in node.args[start:]]
        return ", ".join(given + [f"{k} = {self._value(v)}" for k, v in node.kwargs.items()])

    def _operand(self, value: Any) -> str:
        text = self._value(value)
        return text if isinstance(value, Node) or re.fullmatch(r"[\w.]+", text) else f"({text})"

    def _attribute(self, owner: str, path: str) -> str:
        for part in path.split("."):
            owner = f"{owner}.{part}" if _is_name(part) else f'getattr({owner}, "{part}")'
        return owner

    def _value(self, value: Any) -> str:
        """An argument as it is written."""
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self._global(type(value))}({', '.join(map(self._value, value))})"
        if type(value) is tuple:
            inside = ", ".join(map(self._value, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{k!r}: {self._value(v)}' for k, v in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self._value, (value.start, value.stop, value.step)))})"
        if type(value) is float and not math.isfinite(value):
            return f'float("{value}")'
        if value is None or type(value) in (bool, int, float, complex, str, bytes, range):
            return repr(value)
        return self._global(value)

    def _global(self, value: Any) -> str:
        """What the code calls an object by: where it is found, or a name of its own."""
        path = place_of(value)
        if path is not None:
            first = path.partition(".")[0]
            if first != path:
                known = self.globals.setdefault(first, importlib.import_module(first))
                if first in self._names_of_nodes() or known is not sys.modules.get(first):
                    path = None
        if path is not None:
            return path
        name = self._names.new(str(getattr(value, "__name__", type(value).__name__)), value)
        self.globals[name] = value
        return name

    def _names_of_nodes(self) -> set[str]:
        return {node.name for node in self.graph.nodes}


def _is_name(part: Any) -> bool:
    return isinstance(part, str) and part.isidentifier() and not keyword.iskeyword(part)


def place_of(value: Any) -> str | None:
    """Where an object is found by attributes of a module; the plain name of what is built in."""
    if isinstance(value, taeda.dtype | taeda.layout | taeda.memory_format):
        own = str(value).rpartition(".")[2]
        return f"taeda.{own}" if getattr(taeda, own, None) is value else None
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    if module == "builtins" and vars(builtins).get(name) is value:
        return name
    if module in ("_operator", "math"):
        return f"{module.lstrip('_')}.{name}"
    if module == "__main__" or inspect.ismodule(value):
        return None
    shorter = [f"{p}.{name}" for p in ("taeda", "taeda.nn.functional", module)]
    return next((path for path in shorter if _found(path) is value), None)


def _found(path: str) -> Any:
    """What is at a path in modules that are imported."""
    owner, _, name = path.rpartition(".")
    found = sys.modules.get(owner)
    if found is None or not _is_name(name):
        return None
    return vars(found).get(name, getattr(found, name, None) if owner == "taeda" else None)
