"""`Graph`: steps in the order in which they run."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._code import Names, PythonCode, Writer, snake_case
from .node import Argument, Node, Target, map_aggregate, map_arg, nodes_in

if TYPE_CHECKING:
    from taeda.nn import Module

__all__ = ["Graph", "PythonCode"]


class _Nodes:
    """The nodes of a graph, in order; steps may be added and erased meanwhile."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self._graph, self._backwards = graph, backwards

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._prev if self._backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self._backwards else node._next

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, not self._backwards)


class Graph:
    """Steps: inputs, calls of functions, methods and modules, and what is returned.

    `symbolic_trace` records one from a module; it may also be made step by step. A `GraphModule`
    runs it.

    Args:
        owning_module: the module that its paths belong to.
        tracer_cls: the class of the tracer that records it.

    >>> from taeda import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(taeda.add, (x, 1))
    >>> _ = graph.output(graph.call_method("relu", (y,)))
    >>> print(graph.python_code("self").src)
    def forward(self, x):
        add = taeda.add(x, 1);  x = None
        relu = add.relu();  add = None
        return relu
    >>> fx.GraphModule({}, graph)(taeda.tensor([-3.0, 1.0]))
    tensor([0., 2.])
    """

    def __init__(self, owning_module: Module | None = None, tracer_cls: Any = None) -> None:
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._root = Node(self, "", "output", "root", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = Names()
        self._count = 0

    @property
    def nodes(self) -> _Nodes:
        """All steps, in order; ``reversed()`` of it is them from the end."""
        return _Nodes(self)

    def find_nodes(self, *, op: str, target: Target | None = None) -> list[Node]:
        """The nodes of one kind, in order: those with ``target`` alone, if given."""
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def output_node(self) -> Node:
        """The node of what is returned.

        Raises:
            AssertionError: there is none.
        """
        last = self._root._prev
        if last.op != "output" or last is self._root:
            raise AssertionError("Graph.output_node(): nothing is returned")
        return last

    # ---- adding steps ---------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a step at the place of insertion, which is the end unless it was moved.

        Args:
            op: its kind, as of a `Node`.
            target: what it takes or calls.
            args: by position.
            kwargs: by name.
            name: of its value; made from the target by default, and made unique.
            type_expr: the type of its value.
        """
        for node in nodes_in(args, kwargs):
            if node.graph is not self:
                raise RuntimeError(f"Argument '{node}' of Node does not belong to this Graph")
        chosen = self._names.new(name or self._name_of(op, target))
        made = Node(self, chosen, op, target, args or (), kwargs or {}, type_expr)
        self._insert(made)
        self._count += 1
        return made

    def _name_of(self, op: str, target: Target) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", "value")
        name = name if op == "placeholder" else snake_case(name.replace(".", "_"))
        return name.strip("_") if name.startswith("__") and name.endswith("__") else name

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input; ``*args`` and ``**kwargs`` are names too.

        Args:
            name: of the argument.
            type_expr: its type.
            default_value: its default; none where it is ``...``.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the value of an attribute of the module, such as ``"layer.weight"``."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the method of its first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a submodule, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add what is returned: a node, or a container of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda n: n
    ) -> Node:
        """Add a copy of another graph's node.

        Args:
            node: the node.
            arg_transform: from a node of that graph to one of this.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Argument], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of another graph, but for its output.

        Args:
            g: that graph.
            val_map: filled with the copy of each node; a node with a value in it is not copied.
            return_output_node: return that graph's output node too.

        Returns:
            What that graph returns, in nodes of this one.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    # ---- places ---------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Add steps before a node; without one, before all: ``with graph.inserting_before(n):``."""
        return self._inserting((n or self._root._next).prepend, n)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Add steps after a node; without one, at the end."""
        after = n or self._root._prev

        def insert(node: Node) -> None:
            nonlocal after
            after.append(node)
            after = node

        return self._inserting(insert, n)

    @contextlib.contextmanager
    def _inserting(self, insert: Callable[[Node], None], n: Node | None) -> Iterator[None]:
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        former, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = former

    # ---- changing -------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses.

        Raises:
            RuntimeError: its value is used.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove()
        to_erase._erased = True
        to_erase._take((), {})
        self._count -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove steps whose values nothing uses, and that do nothing else.

        Args:
            is_impure_node: which nodes do something else; `Node.is_impure` by default.

        Returns:
            Whether there were any.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._count
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
        return self._count < before

    def lint(self) -> None:
        """Check that values are there before they are used, and that what paths name exists.

        Raises:
            RuntimeError: something is wrong.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for value in node.all_input_nodes:
                if value not in seen:
                    raise RuntimeError(
                        f"Argument '{value}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_path(node, self.owning_module)

    def _check_path(self, node: Node, found: Any) -> None:
        for part in str(node.target).split("."):
            found = getattr(found, part, None)
            if found is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part}"
                )

    # ---- showing --------------------------------------------------------------------------------

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The code of ``forward``, and the objects that it takes by name.

        Args:
            root_module: how it calls its module.
        """
        return Writer(self, root_module).code()

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [head]
        for n in self.nodes:
            target = n.target if isinstance(n.target, str) else getattr(n.target, "__name__", "")
            rows.append((n.op, n.name, str(target), str(n.args), str(dict(n.kwargs))))
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        inputs, lines = [], []
        for node in self.nodes:
            text = node.format_node()
            if node.op == "placeholder":
                inputs.append(f"%{node.name}")
            lines.append(f"    {text}")
        return f"graph({', '.join(inputs)}):\n" + "\n".join(lines)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        made = type(self)(tracer_cls=self._tracer_cls)
        memo[id(self)] = made
        copies: dict[Node, Argument] = {}
        found = made.graph_copy(self, copies, return_output_node=True)
        if found is not None:
            result, old = found
            made.output(result, old.type).meta = copy.copy(old.meta)
        return made

    def __reduce__(self) -> Any:
        nodes = list(self.nodes)
        number = {node: i for i, node in enumerate(nodes)}

        def numbered(argument: Argument) -> Argument:
            return map_arg(argument, lambda node: _Reference(number[node]))

        rows = [
            (n.op, n.target, numbered(n.args), numbered(n.kwargs), n.name, n.type) for n in nodes
        ]
        return _rebuilt, (type(self), rows, self._tracer_cls)


class _Reference:
    """A node in a pickle, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


def _rebuilt(cls: type[Graph], rows: list[Any], tracer_cls: Any) -> Graph:
    graph = cls(tracer_cls=tracer_cls)
    made: list[Node] = []

    def resolved(part: Any) -> Any:
        return made[part.number] if isinstance(part, _Reference) else part

    for op, target, args, kwargs, name, kind in rows:
        args, kwargs = map_aggregate(args, resolved), map_aggregate(kwargs, resolved)
        made.append(graph.create_node(op, target, args, kwargs, name, kind))
    return graph
