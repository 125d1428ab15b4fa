"""`Node`: one step of a graph."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from taeda._checks import _assert

from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Callable[..., Any] | str

KINDS = (
    "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"
)  # fmt: skip

_with_side_effects: set[Any] = {builtins.print, _assert}


def has_side_effect(fn: Any) -> Any:
    """Keep calls of a function in graphs although nothing uses their results. A decorator too.

    >>> from taeda import fx
    >>> @fx.has_side_effect
    ... def log(x):
    ...     print(x)
    """
    _with_side_effects.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """``fn`` of each value within tuples, lists, dicts and slices, in containers of their kind."""
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list(map_aggregate(part, fn) for part in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(part, fn)) for key, part in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Argument:
    """``fn`` of each node within an argument; other values stay.

    >>> from taeda import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> fx.map_arg((1, [x, 2]), lambda node: node.name)
    (1, ['x', 2])
    """
    if not callable(fn):
        raise AssertionError("map_arg: fn must be callable")
    return map_aggregate(a, lambda part: fn(part) if isinstance(part, Node) else part)


def nodes_in(*arguments: Argument) -> dict[Node, None]:
    """The nodes within arguments, each once, in their order."""
    found: dict[Node, None] = {}
    for argument in arguments:
        map_arg(argument, lambda node: found.setdefault(node))
    return found


class Node:
    """A step of a `Graph`: an input, an attribute, a call, or what is returned.

    Args:
        graph: which it belongs to.
        name: of its value in the code, different from all others in the graph.
        op: ``"placeholder"``, ``"get_attr"``, ``"call_function"``, ``"call_method"``,
            ``"call_module"`` or ``"output"``.
        target: an argument's name, an attribute's or module's path, a function, or a method's name.
        args: what it is called with; the nodes within are those whose values it takes.
        kwargs: by name.
        return_type: of its value, for annotations.

    Attributes:
        users: the nodes that take its value, as a dict's keys.
        meta: for programs that work on graphs; copied with the node.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in KINDS:
            raise AssertionError(f"Node: op must be one of {', '.join(KINDS)}, got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target!r} has type "
                f"{type(target).__name__} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target!r} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._take(args, kwargs)

    def _take(self, args: Any, kwargs: Any) -> None:
        """Set the arguments, and tell the nodes within that they are used."""
        self._args = map_aggregate(tuple(args), lambda part: part)
        self._kwargs = map_aggregate(dict(kwargs), lambda part: part)
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = nodes_in(self._args, self._kwargs)
        for node in self._inputs:
            node.users.setdefault(self)

    @property
    def args(self) -> tuple[Argument, ...]:
        """What it is called with, by position; lists and dicts within cannot be changed."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._take(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """What it is called with, by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: Mapping[str, Argument]) -> None:
        self._take(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes whose values it takes, each once."""
        return list(self._inputs)

    @property
    def next(self) -> Node:
        """The step after it; after the last one comes the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The step before it."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where it was recorded, if the tracer has noted that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _remove(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Move ``x`` to the place before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Node.prepend(): attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move ``x`` to the place after this node."""
        if x is not self:
            self._next.prepend(x)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace an argument by its position."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument at a position, before those that are there."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"Node.insert_arg(): idx must be in [0, {len(self.args)}]")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add an argument by its name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take the value of another node in place of ``old_input``."""
        self._args = map_arg(self._args, lambda n: new_input if n is old_input else n)
        kwargs = map_arg(self._kwargs, lambda n: new_input if n is old_input else n)
        self._take(self._args, kwargs)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Have all users take the value of ``replace_with``.

        Args:
            replace_with: a node.
            delete_user_cb: for which users to do that.
            propagate_meta: copy this node's ``meta`` to ``replace_with``, which must have none.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("replace_all_uses_with(): replace_with has meta of its own")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay although nothing takes its value.

        Args:
            impure_random: count calls of modules and functions that draw random numbers.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _with_side_effects:
                return True
            name = getattr(self.target, "__name__", "")
            inplace = name.endswith("_") and not name.endswith("__")
            return inplace or (impure_random and _is_random(self.target))
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).endswith("__")
        if self.op == "call_module":
            root = self.graph.owning_module
            if root is None:
                raise AssertionError("Node.is_impure(): the graph belongs to no module")
            return bool(getattr(root.get_submodule(str(self.target)), "_is_impure", False))
        return False

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a Node is not iterable: index the Proxy of it, or call operator.getitem")

    def format_node(self) -> str | None:
        """A line that shows it: ``%add : call_function[target=add](args = (%x, 1), ...)``."""
        if self.op == "output":
            return f"return {_shown(self.args[0])}"
        given = f"target={self.target if isinstance(self.target, str) else _name(self.target)}"
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            default = f"(default={_shown(self.args[0])})" if self.args else ""
            return f"%{self.name} : {users} = placeholder[{given}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {users} = get_attr[{given}]"
        args = f"(args = {_shown(self.args)}, kwargs = {_shown(dict(self.kwargs))})"
        return f"%{self.name} : {users} = {self.op}[{given}]{args}"

    def __repr__(self) -> str:
        return self.name


def _is_random(function: Any) -> bool:
    """Whether a function draws numbers: then it takes a generator."""
    try:
        return "generator" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", repr(function)))


def _shown(argument: Argument) -> str:
    return repr(map_arg(argument, lambda node: _Shown(f"%{node.name}")))


class _Shown(str):
    def __repr__(self) -> str:
        return str(self)
