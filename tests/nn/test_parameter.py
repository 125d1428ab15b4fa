"""Parameter and Buffer."""

import copy
import pickle

import pytest

import taeda
from taeda import nn


class Tagged(taeda.Tensor):
    pass


def test_parameter():
    data = taeda.ones(2)
    p = nn.Parameter(data)
    assert type(p) is nn.Parameter and isinstance(p, taeda.Tensor) and p.requires_grad and p.is_leaf
    assert p.data_ptr() == data.data_ptr()
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert tuple(nn.Parameter().shape) == (0,)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert not isinstance(data, nn.Parameter)
    assert nn.Parameter(p) is not p
    with pytest.raises(TypeError, match="int"):
        nn.Parameter(3)


def test_ops_on_parameters_give_tensors():
    p = nn.Parameter(taeda.ones(2))
    assert type(p * 2) is type(p.detach()) is type(p.data) is type(p.clone()) is taeda.Tensor


def test_of_a_subclass():
    tagged = taeda.ones(2).as_subclass(Tagged)
    p = nn.Parameter(tagged)
    assert type(p) is Tagged and isinstance(p, nn.Parameter) and p.requires_grad
    m = nn.Module()
    m.p = p
    assert m._parameters["p"] is p


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies(clone):
    p = nn.Parameter(taeda.ones(2), requires_grad=False)
    p.note = ["hello"]
    q = clone(p)
    assert type(q) is nn.Parameter and not q.requires_grad and q.tolist() == [1.0, 1.0]
    assert q.note == ["hello"] and q.note is not p.note
    assert q.data_ptr() != p.data_ptr()
    pair = clone([p, p])
    assert pair[0] is pair[1]


def test_deepcopy_keeps_strides():
    p = nn.Parameter(taeda.ones(2, 3).t())
    assert copy.deepcopy(p).stride() == p.stride()


def test_buffer():
    b = nn.Buffer(taeda.ones(2), persistent=False)
    assert isinstance(b, nn.Buffer) and isinstance(b, taeda.Tensor) and not b.persistent
    assert not isinstance(taeda.ones(2), nn.Buffer) and not isinstance(b, nn.Parameter)
    assert nn.Buffer(taeda.ones(1)).persistent
    assert tuple(nn.Buffer().shape) == (0,)


def test_uninitialized():
    p = nn.UninitializedParameter(dtype=taeda.float64)
    assert isinstance(p, nn.Parameter) and repr(p) == "<UninitializedParameter>"
    assert isinstance(copy.deepcopy(p), nn.UninitializedParameter)
    assert isinstance(pickle.loads(pickle.dumps(p)), nn.UninitializedParameter)
    with pytest.raises(RuntimeError, match="materialize"):
        p.shape
    with pytest.raises(RuntimeError):
        p.share_memory_()
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and tuple(p.shape) == (2, 3) and p.dtype == taeda.float64
    assert p.requires_grad
