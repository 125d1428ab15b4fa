"""Modules copied, pickled and with state of their own."""

import copy
import pickle

import taeda
from taeda import nn
from tests.nn.trees import Leaf, Tree, names


def assert_own_tables(m):
    for table in ("_parameters", "_buffers", "_modules"):
        for name, value in getattr(m, table).items():
            assert m.__dict__[name] is value
    for child in m.children():
        assert_own_tables(child)


def test_copies():
    m = Tree()
    m.register_forward_hook(hook_for_copies)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.left is other.same and other.left is not m.left
        assert names(other.state_dict().items()) == names(m.state_dict().items())
        assert_own_tables(other)
        other._parameters["own"] = p = nn.Parameter(taeda.zeros(1))
        assert other.own is p and m.own is not p
        assert other(taeda.ones(2)).tolist() == "hooked"
    shallow = copy.copy(m)
    assert shallow.left is m.left
    shallow.own = None
    assert m.own is not None
    assert_own_tables(shallow)


class Hooked:
    def tolist(self):
        return "hooked"


def hook_for_copies(module, args, output):
    return Hooked()


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(taeda.ones(1))
        self.cache = lambda: None

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["cache"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.cache = "restored"


def test_user_getstate_and_setstate():
    m = pickle.loads(pickle.dumps(Stateful()))
    assert m.cache == "restored" and m.w is m._parameters["w"]
    m.w = p = nn.Parameter(taeda.zeros(1))
    assert m._parameters["w"] is p


def test_replacing_the_dict():
    m = Leaf()
    replica = type(m).__new__(type(m))
    replica.__dict__ = m.__dict__.copy()
    replica._parameters["w"] = p = nn.Parameter(taeda.zeros(1))
    assert replica.w is p and m.w is not p
    replica._parameters = {}
    assert not hasattr(replica, "w") and hasattr(m, "w")
