"""The loops over dicts of tensors in C++ that functional steps are made of."""

from __future__ import annotations

import weakref

import pytest

import taeda
from taeda import _C


@pytest.fixture
def tensors():
    return {"a": taeda.ones(2), "b": taeda.zeros(3)}


def test_leaves_have_the_memory_of_the_tensors(tensors):
    tensors["b"].add_(1)
    leaves, versions = _C._leaves(tensors)
    assert list(leaves) == ["a", "b"] and versions == [0, 1] == _C._versions(tensors)
    for name, leaf in leaves.items():
        assert leaf.requires_grad and leaf.is_leaf and leaf is not tensors[name]
        assert leaf.data_ptr() == tensors[name].data_ptr() and not tensors[name].requires_grad
    (leaves["a"] * leaves["a"]).sum().backward()
    assert leaves["a"].grad.tolist() == [2, 2] and tensors["a"].grad is None
    tensors["a"].zero_()
    assert _C._versions(tensors) == _C._versions(leaves) == [1, 1]
    with taeda.inference_mode():
        made = taeda.ones(1)
    for function in (_C._leaves, _C._versions):
        with pytest.raises(RuntimeError, match="version"):
            function({"a": made})


def test_tensors_are_put_into_both_dicts(tensors):
    table, attributes = {"w": None}, {}
    _C._put_tensors([("b", table, attributes, "w"), ("a", table, attributes, "v")], tensors)
    assert table == attributes == {"w": tensors["b"], "v": tensors["a"]}
    with pytest.raises(KeyError, match="c"):
        _C._put_tensors([("c", table, attributes, "w")], tensors)


def test_gradients_are_set_by_name_and_cleared(tensors):
    gradient = taeda.full((3,), 2.0)
    _C._set_gradients(tensors, {"b": gradient})
    assert tensors["b"].grad is gradient and tensors["a"].grad is None
    watched = weakref.ref(gradient)
    del gradient
    _C._set_gradients(tensors, {"b": taeda.ones(3)})
    assert watched() is None and tensors["b"].grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="size"):
        _C._set_gradients(tensors, {"a": taeda.ones(3)})
    with pytest.raises(KeyError, match="c"):
        _C._set_gradients(tensors, {"c": taeda.ones(3)})
    _C._set_gradients(tensors, None)
    assert tensors["a"].grad is None and tensors["b"].grad is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: _C._versions([taeda.ones(1)]),
        lambda: _C._leaves({"a": 1}),
        lambda: _C._put_tensors((), {}),
        lambda: _C._put_tensors([(1, 2)], {}),
        lambda: _C._put_tensors([]),
        lambda: _C._set_gradients([], None),
        lambda: _C._set_gradients({"a": 1}, None),
        lambda: _C._set_gradients({"a": 1}, {"a": taeda.ones(1)}),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises(TypeError):
        call()
