"""Nested containers ("trees") of values: flattened into leaves, mapped, and rebuilt.

Tuples, lists, dictionaries (`dict`, `OrderedDict`, `defaultdict`), `deque`, named tuples, `Size`
and the results with names that operations return are nodes; so is every class that has been given
to `register_pytree_node`. All else is a leaf, None too. `taeda.func` sees arguments as such trees.

>>> from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten
>>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
>>> leaves, spec.num_leaves
([1, 2, 3], 3)
>>> tree_unflatten([10, 20, 30], spec)
{'a': 10, 'b': (20, [30])}
>>> tree_map(lambda x, y: x * y, [1, (2,)], [3, (4,)])
[3, (8,)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from taeda.utils._pytree_nodes import (
    SUPPORTED_NODES,
    Context,
    FlattenFn,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    UnflattenFn,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _register_namedtuple,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    key_get,
    keystr,
    node_of,
    register_pytree_node,
)
from taeda.utils._pytree_spec import LeafSpec, TreeSpec, treespec_dumps, treespec_loads

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "FlattenFn",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "UnflattenFn",
    "_broadcast_to_and_flatten",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_register_namedtuple",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

IsLeaf = Callable[[PyTree], bool]


# ---- flatten and unflatten --------------------------------------------------------------------


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `tree` is a leaf: no node that is known, or one that `is_leaf` says is to be one."""
    return (is_leaf is not None and is_leaf(tree)) or node_of(tree) is None


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree` from left to right, and its structure.

    Dictionaries are read in their own order. Where `is_leaf(node)` is True, the node is a leaf.
    """
    leaves: list[Any] = []
    return leaves, _apart(tree, leaves.append, is_leaf)


def _apart(tree: PyTree, add: Callable[[Any], None], is_leaf: IsLeaf | None) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else node_of(tree)
    if node is None:
        add(tree)
        return LeafSpec()
    children, context = node.flatten_fn(tree)
    return TreeSpec(node.type, context, [_apart(child, add, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of structure `treespec` with these leaves.

    Raises:
        TypeError: `treespec` is none.
        ValueError: there are more or fewer leaves than it has.
    """
    _check_spec(treespec, "tree_unflatten")
    return treespec.unflatten(leaves)


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """The structure of `tree`."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: PyTree, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves of `tree`, one after another."""
    node = None if is_leaf is not None and is_leaf(tree) else node_of(tree)
    if node is None:
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of `tree`, from left to right."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments, those by name last."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as its containers would print, with `*` for every leaf."""
    _check_spec(treespec, "treespec_pprint")
    return repr(treespec.unflatten([LeafSpec()] * treespec.num_leaves))


def _check_spec(treespec: Any, name: str) -> None:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"{name}: expected treespec to be a TreeSpec, got {type(treespec)}")


# ---- with paths ---------------------------------------------------------------------------------


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of `tree`, each with the keys that lead to it; `keystr` writes them as a text.

    Raises:
        ValueError: a class was registered without `flatten_with_keys_fn`.

    >>> from taeda.utils._pytree import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_walk(tree, (), is_leaf))


def _walk(tree: PyTree, path: KeyPath, is_leaf: IsLeaf | None) -> Iterator[tuple[KeyPath, Any]]:
    node = None if is_leaf is not None and is_leaf(tree) else node_of(tree)
    if node is None:
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"tree_flatten_with_path: {node.type} was registered without a flatten_with_keys_fn: "
            "pass one to register_pytree_node"
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _walk(child, (*path, key), is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """As `tree_flatten`, each leaf with its path, as in `tree_leaves_with_path`."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


# ---- maps ---------------------------------------------------------------------------------------


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """A tree of the structure of `tree` with `func(leaf, *leaves)` of each leaf of it.

    The other trees, `rests`, must have the structure of `tree`, or go on where that has a leaf:
    `func` is given the part that is there.

    Raises:
        ValueError: another tree has not that structure.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(map(func, *columns))


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """As `tree_map`, of `func(path, leaf, *leaves)`."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    columns = [paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(map(func, *columns))


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """Calls `func` as `tree_map` does, for its effects, and returns `tree` itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _chosen(which: Any, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`func` for leaves that are chosen by type or by a function; all others as they are."""
    matches = _matches(which)
    return lambda leaf: func(leaf) if matches(leaf) else leaf


def _matches(which: Any) -> Callable[[Any], bool]:
    if isinstance(which, (type, tuple)) or type(which).__name__ == "UnionType":
        return lambda leaf: isinstance(leaf, which)
    if callable(which):
        chooses: Callable[[Any], bool] = which
        return chooses
    _refuse_choice(which)


def _refuse_choice(which: Any) -> NoReturn:
    raise TypeError(f"expected a type, a tuple of types or a function that chooses, got {which!r}")


def tree_map_only(
    type_or_types_or_pred: Any,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """As `tree_map` of one tree; leaves that are not of the type, or not chosen, stay as they are.

    >>> from taeda.utils._pytree import tree_map_only
    >>> tree_map_only(int, lambda x: x + 1, [1, "a", 2.0])
    [2, 'a', 2.0]
    """
    return tree_map(_chosen(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """Calls `func` as `tree_map_only` does, for its effects, and returns `tree` itself."""
    return tree_map_(_chosen(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """Whether `pred` holds for every leaf of the type or types."""
    matches = _matches(type_or_types)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


def tree_any_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """Whether `pred` holds for some leaf of the type or types."""
    matches = _matches(type_or_types)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if matches(leaf))


# ---- prefixes -----------------------------------------------------------------------------------


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf | None = None
) -> list[Any] | None:
    """The leaves of `tree`, each as often as `treespec` has leaves there; None if they do not fit.

    So `tree` may stop early: `(0, 1)` stands for `((0, 0), [1, 1, 1])`.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    node = node_of(tree)
    if treespec.is_leaf() or node is None or node.type is not treespec.type:
        return None
    children, context = node.flatten_fn(tree)
    if context != treespec.context or len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children(), strict=True):
        leaves = _broadcast_to_and_flatten(child, spec, is_leaf)
        if leaves is None:
            return None
        found += leaves
    return found
