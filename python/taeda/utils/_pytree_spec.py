"""The structure of a tree without its leaves, and its text."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from taeda.utils._pytree_nodes import SUPPORTED_NODES, WRITTEN, Context, PyTree, node_of

_MAPPINGS = (dict, OrderedDict, defaultdict)
_PROTOCOL = 1


class TreeSpec:
    """The structure of a tree: the type and context of every node, without the leaves.

    Two are equal if all their types and contexts are; dictionaries with the same keys in another
    order are not. `tree_structure` makes them.

    Args:
        type: the type of the node; None for a leaf.
        context: what belongs to the node itself, such as the keys of a dictionary.
        children_specs: the structures of its children.
    """

    __slots__ = ("_children", "_context", "num_leaves", "type")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_leaves: int = (
            1 if type is None else sum(child.num_leaves for child in self._children)
        )

    @property
    def context(self) -> Context:
        """The node's own data."""
        return self._context

    @property
    def num_children(self) -> int:
        """How many children the node has."""
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        """The number of nodes and leaves."""
        return 1 + sum(child.num_nodes for child in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children, as `children()` gives them."""
        return self.children()

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves.

        Raises:
            ValueError: there are more or fewer of them than the structure has.
        """
        found = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(found) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(found)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(found))

    def _built(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        parts = [child._built(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(parts, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` that are where this structure has its leaves.

        Raises:
            ValueError: `tree` has another structure above them.
        """
        found: list[PyTree] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        for child, part in zip(self._children, self._parts(tree), strict=True):
            child._collect(part, found)

    def _parts(self, tree: PyTree) -> list[PyTree]:
        node = node_of(tree)
        kind = type(tree) if node is None else node.type
        mappings = self.type in _MAPPINGS and kind in _MAPPINGS
        if node is None or (kind is not self.type and not mappings):
            raise ValueError(f"Node type mismatch; expected {self.type}, but got {kind}.")
        parts, context = node.flatten_fn(tree)
        if len(parts) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}."
            )
        if mappings:
            keys = self._context[1] if self.type is defaultdict else self._context
            missing, extra = [k for k in keys if k not in tree], [k for k in tree if k not in keys]
            if missing or extra:
                raise ValueError(
                    f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}."
                )
            return [tree[key] for key in keys]
        if self.type is not deque and context != self._context:
            raise ValueError(
                f"Node context mismatch for {self.type}; expected {self._context!r}, but got "
                f"{context!r}."
            )
        return parts

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.num_leaves == other.num_leaves
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        keys = self._context
        return hash((self.type, repr(keys), tuple(self._children)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        parts = ",\n".join(repr(child) for child in self._children)
        indented = parts.replace("\n", "\n  ")
        return f"TreeSpec({self.type.__name__}, {self._context!r}, [{indented}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


# ---- text ---------------------------------------------------------------------------------------


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON; `treespec_loads` reads it, and so does PyTorch's.

    Args:
        treespec: the structure.
        protocol: the version of the format: 1 is the only one.

    Raises:
        TypeError: it is none, or has a context that JSON cannot hold.
        ValueError: there is no such version.
        NotImplementedError: a class in it was registered without a name to be written.

    >>> from taeda.utils._pytree import tree_structure, treespec_dumps, treespec_loads
    >>> treespec_loads(treespec_dumps(tree_structure([1, 2])))
    TreeSpec(list, None, [*,
      *])
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps: expected treespec to be a TreeSpec, got {type(treespec)}")
    _check_protocol(_PROTOCOL if protocol is None else protocol, "treespec_dumps")
    return json.dumps([_PROTOCOL, _to_json(treespec)])


def _check_protocol(protocol: Any, name: str) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"{name}: unknown protocol {protocol!r}; there is {_PROTOCOL}")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = WRITTEN.get(spec.type)
    if written is None:
        raise NotImplementedError(
            f"treespec_dumps: {spec.type} has no name to be written by: give register_pytree_node "
            "a serialized_type_name"
        )
    if written.to_dumpable is not None:
        context = written.to_dumpable(spec.context)
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError(
                f"treespec_dumps: JSON cannot hold the context of {spec.type}: give "
                "register_pytree_node a to_dumpable_context"
            ) from error
    children = [_to_json(child) for child in spec.children()]
    return {"type": written.name, "context": context, "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` has written.

    Raises:
        ValueError: it is of another version.
        NotImplementedError: no class is registered under a name in it.
    """
    protocol, text = json.loads(serialized)
    _check_protocol(protocol, "treespec_loads")
    return _from_json(text, {written.name: cls for cls, written in WRITTEN.items()})


def _from_json(text: dict[str, Any], types: dict[str, Any]) -> TreeSpec:
    if text["type"] is None:
        return _LEAF
    if text["type"] not in types:
        raise NotImplementedError(f"treespec_loads: no class is registered as {text['type']!r}")
    cls = types[text["type"]]
    read = WRITTEN[cls].from_dumpable
    context = json.loads(text["context"]) if read is None else read(text["context"])
    return TreeSpec(cls, context, [_from_json(child, types) for child in text["children_spec"]])
