"""Trees of values: what is a node, structures, maps, paths, prefixes, texts, and trees in `func`."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import taeda
from taeda.utils import _pytree as tree
from tests.dropin.test_compat import run

Pair = namedtuple("Pair", "a b")
VALUES = {
    "b": 1,
    "a": (2, [3, None]),
    "c": Pair(4, 5),
    "d": OrderedDict(x=6),
    "e": defaultdict(int, {"q": 7}),
    "f": deque([8, 9], maxlen=3),
    "g": taeda.Size([10]),
    "h": (),
}
LEAVES = [1, 2, 3, None, 4, 5, 6, 7, 8, 9, 10]


class Node:
    def __init__(self, *children, label=None):
        self.children, self.label = children, label


tree.register_pytree_node(
    Node,
    lambda node: (list(node.children), node.label),
    lambda children, label: Node(*children, label=label),
    serialized_type_name="tests.Node",
    flatten_with_keys_fn=lambda node: (
        [(tree.SequenceKey(i), c) for i, c in enumerate(node.children)],
        node.label,
    ),
)


def test_apart_and_together():
    leaves, spec = tree.tree_flatten(VALUES)
    assert leaves == LEAVES == tree.tree_leaves(VALUES) == list(tree.tree_iter(VALUES))
    built = tree.tree_unflatten(leaves, spec)
    assert built == VALUES and list(built) == list(VALUES)
    assert [type(x) for x in built.values()] == [type(x) for x in VALUES.values()]
    assert built["e"].default_factory is int and built["f"].maxlen == 3
    assert (spec.num_leaves, spec.num_children, spec.type) == (11, 8, dict)
    assert spec.num_nodes == 20 and spec.context == list(VALUES)
    assert tree.tree_flatten((), None) == ([], tree.TreeSpec(tuple, None, []))
    assert tree.arg_tree_leaves(1, [2], a=(3,)) == [1, 2, 3]
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec .* holds 11 items"):
        tree.tree_unflatten([1], spec)
    with pytest.raises(TypeError, match="expected treespec to be a TreeSpec"):
        tree.tree_unflatten([1], 3)


def test_results_with_names_are_nodes():
    result = taeda.arange(6.0).view(2, 3).max(1)
    leaves, spec = tree.tree_flatten(result)
    assert len(leaves) == 2 and type(spec.unflatten(leaves)) is type(result)
    assert tree.is_structseq(result) and not tree.is_namedtuple(result)
    assert tree.is_namedtuple(Pair) and tree.is_namedtuple_instance(Pair(1, 2))


def test_leaves_on_demand():
    def pair(x):
        return isinstance(x, list) and len(x) == 2

    assert tree.tree_leaves([[1, 2], [3], 4], is_leaf=pair) == [[1, 2], 3, 4]
    assert tree.tree_map(len, {"a": [1, 2]}, is_leaf=pair) == {"a": 2}
    assert tree.tree_is_leaf(None) and tree.tree_is_leaf({1}) and not tree.tree_is_leaf([])


def test_structures_compare_print_and_copy():
    spec = tree.tree_structure([1, {"a": (2, 3)}])
    assert (
        repr(spec)
        == "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [TreeSpec(tuple, None, [*,\n      *])])])"
    )
    assert tree.treespec_pprint(spec) == "[*, {'a': (*, *)}]"
    assert spec == copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec))
    assert hash(spec) == hash(tree.tree_structure([5, {"a": (6, 7)}]))
    assert spec.child(0).is_leaf() and spec.children()[0] == tree.LeafSpec()
    assert isinstance(spec.child(0), tree.LeafSpec) and not isinstance(spec, tree.LeafSpec)
    assert tree.tree_structure({"a": 1, "b": 2}) != tree.tree_structure({"b": 1, "a": 2})
    assert tree.tree_structure((1,)) != tree.tree_structure([1]) != 3


def test_maps():
    assert tree.tree_map(lambda x, y: x + y, {"a": 1, "b": 2}, {"b": 10, "a": 20}) == {
        "a": 21,
        "b": 12,
    }
    assert tree.tree_map(lambda x, y: (x, y), [1, 2], [3, [4, 5]]) == [(1, 3), (2, [4, 5])]
    assert tree.tree_map(lambda x, y: x, OrderedDict(a=1), {"a": 2}) == OrderedDict(a=1)
    assert tree.tree_map_only(int, str, [1, 2.0, None]) == ["1", 2.0, None]
    assert tree.tree_map_only((int, float), str, [1, 2.0, None]) == ["1", "2.0", None]
    assert tree.tree_map_only(lambda x: x == 1, str, [1, 2]) == ["1", 2]
    seen, given = [], [1, (2.0,)]
    assert tree.tree_map_(seen.append, given) is given and seen == [1, 2.0]
    assert tree.tree_map_only_(float, seen.append, given) is given and seen == [1, 2.0, 2.0]
    assert tree.tree_all(bool, [1, 1]) and not tree.tree_all(bool, [1, 0])
    assert tree.tree_any(bool, [0, 1]) and tree.tree_all_only(int, bool, [1, 0.0])
    assert not tree.tree_any_only(int, bool, [0, 1.0])
    with pytest.raises(TypeError, match="a type, a tuple of types or a function"):
        tree.tree_map_only(3, str, [1])


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ([1], (1,), "Node type mismatch"),
        ([1], 1, "Node type mismatch"),
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1"),
        ({"a": 1}, {"b": 1}, r"missing key\(s\): \['a'\]; extra key\(s\): \['b'\]"),
        (Node(1, label="x"), Node(1, label="y"), "Node context mismatch"),
        (Pair(1, 2), (1, 2), "Node type mismatch"),
    ],
)
def test_maps_of_trees_that_differ(one, other, message):
    with pytest.raises(ValueError, match=message):
        tree.tree_map(lambda x, y: x, one, other)


def test_paths():
    found, spec = tree.tree_flatten_with_path(VALUES)
    assert [leaf for _, leaf in found] == LEAVES and spec == tree.tree_structure(VALUES)
    texts = [tree.keystr(path) for path, _ in found]
    assert texts[:5] == ["['b']", "['a'][0]", "['a'][1][0]", "['a'][1][1]", "['c'].a"]
    assert all(tree.key_get(VALUES, path) == leaf for path, leaf in found)
    assert tree.tree_map_with_path(lambda p, x: f"{tree.keystr(p)}{x}", [Node(5)])[0].children == (
        "[0][0]5",
    )


def test_prefixes():
    spec = tree.tree_structure(((1, 2), [3, (4, 5)]))
    spread = tree._broadcast_to_and_flatten
    assert spread(None, spec) == [None] * 5
    assert spread((1, [2, 3]), spec) == [1, 1, 2, 3, 3]
    assert spread([1, 2], spec) is None and spread((1,), spec) is None
    assert spread(((1, [2]), 3), spec) is None


def test_texts():
    spec = tree.tree_structure([VALUES["a"], VALUES["d"], VALUES["e"], VALUES["f"], Node(1)])
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    named = tree.tree_structure(Pair(1, 2))
    with pytest.raises(NotImplementedError, match="_register_namedtuple"):
        tree.treespec_dumps(named)
    tree._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    assert tree.treespec_loads(tree.treespec_dumps(named)) == named
    with pytest.raises(TypeError, match="JSON cannot hold"):
        tree.treespec_dumps(tree.tree_structure(Node(label={1})))
    with pytest.raises(NotImplementedError, match="'no.Such'"):
        tree.treespec_loads('[1, {"type": "no.Such", "context": "null", "children_spec": []}]')
    with pytest.raises(ValueError, match="unknown protocol 2"):
        tree.treespec_loads("[2, null]")
    text = tree.treespec_dumps(tree.tree_structure(VALUES["e"])).replace("builtins", "os")
    with pytest.raises(NotImplementedError, match="default_factory"):
        tree.treespec_loads(text)


def test_texts_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.utils._pytree
    for value in (VALUES["a"], VALUES["d"], VALUES["e"], VALUES["f"], {1: [2]}, 3):
        text = tree.treespec_dumps(tree.tree_structure(value))
        assert text == theirs.treespec_dumps(theirs.tree_structure(value))


def test_registering_twice():
    class Half:
        pass

    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(Node, None, None)
    with pytest.raises(ValueError, match="both or none"):
        tree.register_pytree_node(Half, None, None, to_dumpable_context=str)
    assert Half not in tree.SUPPORTED_NODES
    tree.register_pytree_node(Half, lambda h: ([], None), lambda c, _: Half())
    with pytest.raises(ValueError, match="without a flatten_with_keys_fn"):
        tree.tree_leaves_with_path(Half())


def test_func_knows_registered_nodes():
    x = taeda.arange(6.0).view(2, 3)
    out = taeda.vmap(lambda node: Node(node.children[0] * 2, label=node.label))(Node(x, label="l"))
    assert out.label == "l" and taeda.equal(out.children[0], 2 * x)
    grads = taeda.func.grad(lambda node: (node.children[0] ** 2).sum())(Node(x))
    assert isinstance(grads, Node) and taeda.equal(grads.children[0], 2 * x)
    largest = taeda.vmap(lambda row: row.max(0))(x)
    assert largest.values.tolist() == [2.0, 5.0] and largest.indices.tolist() == [2, 2]


def test_drop_in(tmp_path):
    program = """
        import torch
        import torch.utils._pytree as pytree
        from torch.utils._pytree import tree_map
        print(torch.utils._pytree is pytree, tree_map(str, (1,)))
    """
    assert run(program, folder=tmp_path).split() == ["True", "('1',)"]
