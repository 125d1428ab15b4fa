"""`Proxy`: stands for a value while a graph is recorded."""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

from taeda import Tensor, functional, overrides

from .graph import Graph
from .node import Argument, Node, Target, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """A program asks a value that is not known while it is traced."""


class TracerBase:
    """Makes nodes of a graph from what is done with proxies.

    Attributes:
        graph: what is recorded.
    """

    graph: Graph

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node, from arguments that may hold proxies, and return its proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, given, named, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of a node: proxies become their nodes."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, a: Any) -> Argument:
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        return a

    def to_bool(self, obj: Proxy) -> bool:
        """The truth value of a proxy, where a condition asks for it."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The values in a proxy, where a loop asks for them."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. Iterate over what is known when the "
            "program is traced, such as range(3)"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy that is passed on as ``**kwargs``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds what is done with proxies to a graph.

    >>> from taeda import fx
    >>> graph = fx.Graph()
    >>> x = fx.Proxy(graph.placeholder("x"), fx.proxy.GraphAppendingTracer(graph))
    >>> _ = graph.output((x + 1).relu().node)
    >>> [node.name for node in graph.nodes]
    ['x', 'add', 'relu', 'output']
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the value of a node: what is done with it is recorded as further nodes.

    Args:
        node: the node.
        tracer: what records; by default, whatever is done is added to the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__") and name.endswith("__"):  # protocols ask for these
            raise AttributeError(f"'Proxy' object has no attribute {name!r}")
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        count = _unpacks(caller)
        return iter([self[i] for i in range(count)]) if count else self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call taeda.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """Asked for where the proxy is passed on as ``**kwargs``."""
        return self.tracer.keys(self)

    def __getitem__(self, index: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __eq__(self, other: object) -> Any:
        return self.tracer.create_proxy("call_function", operator.eq, (self, other), {})

    def __ne__(self, other: object) -> Any:
        return self.tracer.create_proxy("call_function", operator.ne, (self, other), {})

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find(a: Any) -> Any:
            if isinstance(a, Proxy):
                tracers[a.tracer] = None
            return a

        map_aggregate((args, kwargs), find)
        if len(tracers) != 1:
            raise RuntimeError(
                f"{func.__name__}(): found {len(tracers)} different tracers among the arguments"
            )
        (tracer,) = tracers
        if func is functional.einsum and len(args) == 2 and isinstance(args[1], tuple | list):
            args = (args[0], *args[1])  # recorded in one form, as other programs look for it
        if overrides.is_tensor_method_or_property(func):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


def _unpacks(frame: Any) -> int:
    """Into how many names the caller unpacks what it iterates over; 0 where it does not."""
    if frame is None:
        return 0
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            unpacking = instruction.opname == "UNPACK_SEQUENCE"
            return int(instruction.argval) if unpacking else 0
    return 0


class _Later(Proxy):
    """A proxy whose node is made when it is asked for."""

    def __init__(self, tracer: TracerBase) -> None:
        self.tracer = tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Its node."""
        if self._node is None:
            self._node = self._make()
        return self._node

    def _make(self) -> Node:
        raise NotImplementedError


class Attribute(_Later):
    """An attribute of a proxy: a method, if it is called, and else a value."""

    def __init__(self, root: Proxy, attr: str) -> None:
        super().__init__(root.tracer)
        self.root, self.attr = root, attr

    def _make(self) -> Node:
        call = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
        return call.node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(_Later):
    """A parameter of the module that is traced; its shape is known."""

    def __init__(self, tracer: TracerBase, path: str, parameter: Tensor) -> None:
        super().__init__(tracer)
        self._path, self._parameter = path, parameter

    def _make(self) -> Node:
        return self.tracer.create_node("get_attr", self._path, (), {})

    def __repr__(self) -> str:
        return f"ParameterProxy({self._path})"

    @property
    def shape(self) -> Any:
        """Of the parameter."""
        return self._parameter.shape

    @property
    def ndim(self) -> int:
        """Of the parameter."""
        return self._parameter.ndim

    def size(self, *args: Any) -> Any:
        """Of the parameter."""
        return self._parameter.size(*args)

    def dim(self) -> int:
        """Of the parameter."""
        return self._parameter.dim()

    def numel(self) -> int:
        """Of the parameter."""
        return self._parameter.numel()


def _forward(function: Any) -> Any:
    def method(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _backward(function: Any) -> Any:
    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


# Each operator is recorded as the function of module `operator`.
_BOTH_WAYS: tuple[Any, ...] = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod,
    operator.pow, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
    operator.matmul,
)  # fmt: skip
_ONE_WAY: tuple[Any, ...] = (
    operator.lt, operator.gt, operator.le, operator.ge, operator.neg, operator.pos,
    operator.invert, abs,
)  # fmt: skip
for _function in (*_BOTH_WAYS, *_ONE_WAY):
    _own = _function.__name__.rstrip("_")
    setattr(Proxy, f"__{_own}__", _forward(_function))
    if _function in _BOTH_WAYS:
        setattr(Proxy, f"__r{_own}__", _backward(_function))
