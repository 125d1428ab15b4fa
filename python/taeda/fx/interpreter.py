"""Running a graph step by step: `Interpreter`, and `Transformer`, which makes another graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from taeda import nn

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import GraphAppendingTracer, Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph, step by step. Subclasses change what a kind of step does.

    Args:
        module: where attributes and modules are; its graph is run.
        garbage_collect_values: let go of values after their last use.
        graph: run this graph in place of the module's.

    >>> from taeda import fx
    >>> class Halves(fx.Interpreter):
    ...     def call_method(self, target, args, kwargs):
    ...         return super().call_method(target, args, kwargs) / 2
    >>> module = fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> Halves(module).run(taeda.tensor([4.0]))
    tensor([3.])
    """

    def __init__(
        self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = graph or cast("GraphModule", module).graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self._last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(self.graph.nodes):
            for node in user.all_input_nodes:
                if node not in seen:
                    seen.add(node)
                    self._last.setdefault(user, []).append(node)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph.

        Args:
            args: its inputs, in order.
            initial_env: values of nodes that are known, and are not computed.

        Returns:
            What it returns.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if hasattr(error, "add_note"):
                    error.add_note(f"While executing {node.format_node()}")
                raise
            for done in self._last.get(node, ()) if self.garbage_collect_values else ():
                del self.env[done]
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node) -> Any:
        """Run a step, from the values in ``env``."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a step, with values in place of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        return args, self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """An argument with values in place of nodes; lists and dicts in it are plain ones."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}")
            return self.env[node]

        return _plain(map_arg(args, value))

    # ---- kinds of steps -------------------------------------------------------------------------

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input; its default, where there is none more."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {target}, but one was not passed in!"
        )

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What is at a path in the module.

        Raises:
            RuntimeError: there is nothing.
        """
        found: Any = self.module
        for part in target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}: no {part!r}")
            found = getattr(found, part)
        return found


def _plain(value: Any) -> Any:
    """A value with lists and dicts that can be changed."""
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value


class Transformer(Interpreter):
    """Makes another graph: each step is run with proxies. Subclasses change steps.

    Args:
        module: a module with a graph.

    >>> from taeda import fx
    >>> class Neg(fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return -super().call_function(target, args, kwargs)
    >>> print(Neg(fx.symbolic_trace(lambda x: taeda.sin(x))).transform().code)
    def forward(self, x):
        sin = taeda.sin(x);  x = None
        neg = -sin;  sin = None
        return neg
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer: TracerBase = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An attribute, in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function, in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule, in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run all steps; the module with the new graph."""
        result = super().run()
        if result is not None:
            nodes = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(nodes)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
