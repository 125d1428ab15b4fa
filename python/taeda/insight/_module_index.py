"""Which module an operation of the graph ran in.

The graph knows parameters, not modules. An operation that reads a parameter is in the module that
has it. One that reads none is between two that do: it is in the module that holds both, or in a
module without parameters (an activation, a pooling layer) that stands between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.nn import Module

    from ._graph import Graph, Op

# What only moves elements: views, and copies into another layout or dtype.
REARRANGING = frozenset(_C._op_traits("view")) | {"reshape", "clone", "to_copy"}
# Modules that only call what they hold, one after the other: no operation is their own.
_CONTAINERS = {"Sequential", "ModuleList", "ModuleDict"}
_REORDERING = {"LSTM", "GRU", "RNN", "MultiheadAttention"}
# What a class's forward records, where the names differ.
_RECORDS = {
    "flatten": ("view", "reshape"),
    "unflatten": ("view", "reshape"),
    "identity": (),
    "silu": ("silu", "mul"),
    "zeropad2d": ("pad", "constant_pad_nd"),
}


class ModuleIndex:
    """The modules of a model and the names of their parameters.

    Args:
        model: a module, or None.
    """

    def __init__(self, model: Module | None) -> None:
        self.modules: dict[str, Any] = {}
        self.order: dict[str, int] = {}
        self.owners: dict[int, list[tuple[str, str]]] = {}  # of parameters: module, own name
        if model is not None:
            for path, module in model.named_modules():
                self.order[path] = len(self.modules)
                self.modules[path] = module
                for name, parameter in module._parameters.items():
                    if parameter is not None:
                        self.owners.setdefault(id(parameter), []).append((path, name))

    def names(self, parameter: Tensor) -> list[str]:
        """All names that a parameter has in the model."""
        pairs = self.owners.get(id(parameter), [])
        return [f"{path}.{name}" if path else name for path, name in pairs]

    def assign(self, graph: Graph) -> None:
        """Set every operation's `module`."""
        if not self.modules:
            return
        weights = self._of_parameters(graph)
        self._between(graph, weights)

    def _of_parameters(self, graph: Graph) -> set[int]:
        """Operations that read parameters; returns those that read nothing else."""
        alone: set[int] = set()  # leaves, and what is computed from parameters only
        for key in reversed(graph.order):
            op = graph.ops[key]
            if op.leaf is not None:
                if id(op.leaf) in self.owners:
                    alone.add(key)
                    op.module = self.owners[id(op.leaf)][0][0]
                continue
            own = [graph.ops[k] for k in op.inputs if k is not None and k in alone]
            if not own:
                continue
            op.module = self._owner(op, own[0])
            if all(k is None or k in alone for k in op.inputs) and op.name in _PREPARE:
                alone.add(key)
        return alone

    def _owner(self, op: Op, weight: Op) -> str | None:
        pairs = self.owners.get(id(weight.leaf), [])
        for path, _ in pairs if len(pairs) > 1 else []:  # a shared parameter
            if op.name in type(self.modules[path]).__name__.lower():
                return path
        return pairs[0][0] if pairs else weight.module

    def _between(self, graph: Graph, weights: set[int]) -> None:
        known = {k: op.module for k, op in graph.ops.items() if op.module is not None}
        below: dict[int, str] = {}  # the nearest operation with a module, towards the leaves
        for key in reversed(graph.order):
            op = graph.ops[key]
            inputs = [k for k in op.inputs if k is not None and k not in weights]
            last = max((k for k in inputs if k in below), default=None)
            if key in known and op.leaf is None:
                below[key] = known[key] or ""
            elif last is not None:
                below[key] = below[last]
        above: dict[int, str] = {}
        for key in graph.order:
            users = graph.users.get(key, [])
            first = min((k for k in users if k in above), default=None)
            if key in known:
                above[key] = known[key] or ""
            elif first is not None:
                above[key] = above[first]
        taken: set[str] = set()
        self.habits: set[tuple[type, str, str]] = set()
        for key in reversed(graph.order):
            op = graph.ops[key]
            if op.leaf is None and op.module is None and key in below:
                op.module = self._place(op, below[key], above.get(key), taken)

    def _place(self, op: Op, below: str, above: str | None, taken: set[str]) -> str | None:
        """The module of an operation between those of `below` and `above`."""
        shared = _shared(below, above) if above is not None else ""
        start = self.order[below]
        stop = self.order[above] if above is not None else len(self.order)
        free = [
            path
            for path, module in self.modules.items()
            if (start < self.order[path] < stop or stop <= start < self.order[path])
            and (not shared or path.startswith(shared + "."))
            and not module._modules
            and not module._parameters
        ]
        matching = [path for path in free if _fits(op.name, type(self.modules[path]).__name__)]
        fresh = [path for path in matching if path not in taken] or matching
        if fresh:
            taken.add(fresh[0])
            return fresh[0]
        if above is None and op.name not in REARRANGING:
            return None  # it belongs to the loss
        if op.name in REARRANGING:  # these bring their inputs into another order
            for path in (above, below, below.rpartition(".")[0]):
                if path and type(self.modules[path]).__name__ in _REORDERING:
                    return path
        container = type(self.modules[shared]).__name__ in _CONTAINERS
        if container and len(free) == 1:
            return free[0]
        # A container calls no operations, but what it holds does, and does so each time.
        for path in _between(shared, below):
            module = type(self.modules[path])
            habit = (module, below[len(path) :], op.name)
            if container and module.__name__ not in _CONTAINERS:
                self.habits.add(habit)
            if habit in self.habits:
                return path
        return shared if above is not None else None


# What parameters pass through on their way to the operation that they are for.
_PREPARE = REARRANGING | {"mul", "div", "cat"}


def _shared(a: str, b: str) -> str:
    """The module that holds both."""
    common = []
    for left, right in zip(a.split("."), b.split("."), strict=False):
        if left != right:
            break
        common.append(left)
    return ".".join(common)


def _between(shared: str, below: str) -> list[str]:
    """The modules inside of `shared` that hold `below`, and it, from the outermost."""
    paths, path = [], shared
    for part in below[len(shared) + 1 if shared else 0 :].split("."):
        if part:
            path = f"{path}.{part}" if path else part
            paths.append(path)
    return paths


def _fits(op: str, class_name: str) -> bool:
    name = class_name.lower()
    if name in _RECORDS:
        return op in _RECORDS[name]
    plain = op.replace("_", "")
    return name == plain or plain.removeprefix("adaptive") == name.removeprefix("adaptive")
