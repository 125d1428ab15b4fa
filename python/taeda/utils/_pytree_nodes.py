"""The types of tree nodes, how each is flattened, and the keys of their children."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

from taeda._C import Size

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFn: TypeAlias = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn: TypeAlias = Callable[[Iterable[Any], Context], PyTree]


# ---- keys ---------------------------------------------------------------------------------------


class KeyEntry(Protocol):
    """One step from a node to a child of it."""

    def get(self, parent: Any) -> Any:
        """The child of `parent` that this key names."""


KeyPath: TypeAlias = tuple[KeyEntry, ...]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The index of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child at this index."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child under this key."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of a child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute of this name."""
        return getattr(obj, self.name)


def keystr(kp: KeyPath) -> str:
    """A path as it would be written in Python, `['a'][0].b`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The value at the end of a path that begins at `obj`."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---- nodes --------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How values of a type are flattened into children and a context, and rebuilt."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None


class Written(NamedTuple):
    """How a type and its contexts are written into the text of a structure, and read from it."""

    name: str
    to_dumpable: Callable[[Context], Any] | None = None
    from_dumpable: Callable[[Any], Context] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
WRITTEN: dict[Any, Written] = {}
NAMED_TUPLES: dict[str, type] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]]
    | None = None,
) -> None:
    """Make values of exactly the type `cls` nodes.

    Args:
        cls: the type; values of its subclasses stay what they are.
        flatten_fn: `value -> (children, context)`; the context is compared by `==`.
        unflatten_fn: `(children, context) -> value`.
        serialized_type_name: what `treespec_dumps` writes for the type.
        to_dumpable_context: what it writes for a context, as JSON can hold it.
        from_dumpable_context: how `treespec_loads` reads that.
        flatten_with_keys_fn: `value -> ([(key, child), ...], context)`, for paths.

    Raises:
        ValueError: `cls` is a node already, or only one of the functions for contexts is given.

    >>> from taeda.utils._pytree import register_pytree_node, tree_leaves
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    >>> tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: {cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"register_pytree_node: both or none of to_dumpable_context and from_dumpable_context "
            f"are needed for {cls}"
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        WRITTEN[cls] = Written(serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples, which are nodes anyway, the name that is written for it."""
    NAMED_TUPLES[serialized_type_name] = cls


def is_namedtuple_class(cls: Any) -> bool:
    """Whether `cls` was made by `namedtuple` or `NamedTuple`, or is a subclass of such a one."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether `obj` is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether `cls` is a class of tuples with names made in C, as `return_types.max` is."""
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: Any) -> bool:
    """Whether `obj` is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether `obj` is of such a class, or is one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: PyTree) -> Any:
    """The type that a node is known by: `namedtuple` for all named tuples."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def node_of(tree: PyTree) -> NodeDef | None:
    """The NodeDef of `tree`; None for a leaf."""
    kind = type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is not None or not issubclass(kind, tuple):
        return node
    if hasattr(kind, "_fields"):
        return SUPPORTED_NODES[namedtuple]
    if kind.__module__ == "taeda.return_types":
        _register_sequence(kind, kind)
        return SUPPORTED_NODES[kind]
    return None


# ---- the containers of Python -------------------------------------------------------------------


def _list_flatten(d: Any) -> tuple[list[Any], Context]:
    """The items of a sequence; there is no context."""
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    """The list of these items."""
    return list(values)


def _register_sequence(cls: type, make: Callable[[Iterable[Any]], Any]) -> None:
    register_pytree_node(
        cls,
        _list_flatten,
        lambda values, _: make(values),
        serialized_type_name=f"{_module(cls)}.{cls.__qualname__}",
        flatten_with_keys_fn=_list_flatten_with_keys,
    )


def _module(cls: type) -> str:
    """PyTorch's name for the module of a class, so that texts can be exchanged."""
    return "torch" + cls.__module__[5:] if cls.__module__.startswith("taeda") else cls.__module__


def _dict_flatten(d: Any) -> tuple[list[Any], Context]:
    """The values of a dictionary; its keys are the context."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    """The dictionary of these values under the keys of the context."""
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    """The values of a dictionary with the keys that name them; its keys are the context."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    """The items of a sequence with their indices; there is no context."""
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _mapping_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], SUPPORTED_NODES[
        type(d)
    ].flatten_fn(d)[1]


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_to_text(context: Context) -> Any:
    factory, keys = context
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _defaultdict_from_text(text: Any) -> Context:
    module, name = text["default_factory_module"], text["default_factory_name"]
    if module != "builtins" or name not in ("bool", "dict", "float", "int", "list", "set", "str"):
        # Nothing that a text names is imported.
        raise NotImplementedError(
            f"treespec_loads: the default_factory of a defaultdict is {module}.{name}; only the "
            "types of Python itself are read"
        )
    import builtins

    return [getattr(builtins, name), text["dict_context"]]


def _namedtuple_to_text(context: Context) -> Any:
    for name, cls in NAMED_TUPLES.items():
        if cls is context:
            return name
    raise NotImplementedError(
        f"treespec_dumps: the named tuple {context} has no name to be written by: give it one with "
        "_register_namedtuple"
    )


def _namedtuple_from_text(text: Any) -> Context:
    if text not in NAMED_TUPLES:
        raise NotImplementedError(f"treespec_loads: no named tuple is registered as {text!r}")
    return NAMED_TUPLES[text]


def _register_all() -> None:
    _register_sequence(tuple, tuple)
    _register_sequence(list, list)
    _register_sequence(Size, Size)
    register_pytree_node(
        dict,
        _dict_flatten,
        _dict_unflatten,
        serialized_type_name="builtins.dict",
        flatten_with_keys_fn=_mapping_with_keys,
    )
    register_pytree_node(
        namedtuple,  # type: ignore[arg-type]
        lambda d: (list(d), type(d)),
        lambda values, cls: cls(*values),
        serialized_type_name="collections.namedtuple",
        to_dumpable_context=_namedtuple_to_text,
        from_dumpable_context=_namedtuple_from_text,
        flatten_with_keys_fn=lambda d: (
            [(GetAttrKey(name), x) for name, x in zip(d._fields, d, strict=True)],
            type(d),
        ),
    )
    register_pytree_node(
        OrderedDict,
        _dict_flatten,
        lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
        serialized_type_name="collections.OrderedDict",
        flatten_with_keys_fn=_mapping_with_keys,
    )
    register_pytree_node(
        defaultdict,
        _defaultdict_flatten,
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
        serialized_type_name="collections.defaultdict",
        to_dumpable_context=_defaultdict_to_text,
        from_dumpable_context=_defaultdict_from_text,
        flatten_with_keys_fn=_mapping_with_keys,
    )
    register_pytree_node(
        deque,
        lambda d: (list(d), d.maxlen),
        lambda values, maxlen: deque(values, maxlen),
        serialized_type_name="collections.deque",
        flatten_with_keys_fn=lambda d: (
            [(SequenceKey(i), x) for i, x in enumerate(d)],
            d.maxlen,
        ),
    )


_register_all()
