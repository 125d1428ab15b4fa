"""Module: classes with `__getattr__`, `__setattr__` and properties of their own."""

import copy
import pickle
import sys

import pytest

import taeda
from taeda import nn


def test_user_getattr_and_properties():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        @property
        def broken(self):
            return taeda.ones(1).no_such_thing

    class Broken(nn.Module):
        @property
        def broken(self):
            return self.missing_thing

    m = Wrapper(nn.Linear(2, 3))
    assert m.in_features == 2 and m.weight is m.inner.weight
    with pytest.raises(AttributeError, match="missing_thing"):
        Broken().broken


class Asked(nn.Module):
    """Is asked for its members, as wrappers and probabilistic modules are in PyTorch."""

    def __init__(self):
        super().__init__()
        self.asked_for = []
        self.inner = nn.Linear(2, 3)
        self.scale = nn.Parameter(taeda.ones(1))
        self.register_buffer("count", taeda.zeros(1))

    def __getattr__(self, name):
        if "asked_for" in self.__dict__:
            self.asked_for.append(name)
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x):
        return self.inner(x) * self.scale


def test_getattr_that_hands_on_is_asked_for_members():
    m = Asked()
    assert m(taeda.ones(1, 2)).shape == (1, 3) and m.asked_for[-2:] == ["inner", "scale"]
    assert m.weight is m._modules["inner"].weight and m.count is m._buffers["count"]
    assert [name for name, _ in m.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert {"inner", "scale", "count", "forward"} <= set(dir(m)) and "scale" not in m.__dict__
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        _ = m.nothing
    m.scale = nn.Parameter(taeda.zeros(1))
    assert m.scale is m._parameters["scale"]
    del m.scale
    assert not hasattr(m, "scale")
    m.scale = 3.0
    assert m.scale == 3.0 and not m._parameters


def test_getattr_that_hands_on_after_copies_and_changes_of_class():
    m = copy.deepcopy(Asked())
    assert "inner" not in m.__dict__ and m.inner.weight.shape == (3, 2)
    m = pickle.loads(pickle.dumps(m))
    assert "inner" not in m.__dict__ and m.inner.weight.shape == (3, 2)

    class AskedLinear(nn.Linear, Asked):
        def __init__(self):
            nn.Linear.__init__(self, 2, 3)

    layer = nn.Linear(2, 3)
    assert "weight" in layer.__dict__
    weight = layer.weight
    layer.__class__ = AskedLinear
    assert "weight" not in layer.__dict__ and layer.weight is weight
    layer.__class__ = nn.Linear
    assert layer.__dict__["weight"] is weight


def test_getattr_called_by_name():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(taeda.zeros(2))

        def set(self, name, value):
            self.__getattr__(name).data.fill_(value)

    class Mixin:
        @property
        def doubled(self):
            return 2 * self.__getattr__("raw")

    class Mixed(Mixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(taeda.ones(1))

    class Plain(nn.Linear):
        pass

    m = Named()
    m.set("raw", 3.0)
    assert m.raw.tolist() == [3.0, 3.0]
    with pytest.raises(AttributeError, match="'Named' object has no attribute 'nothing'"):
        m.set("nothing", 1.0)
    assert Mixed().doubled.item() == 2.0
    plain = Plain(1, 1)
    assert "weight" in plain.__dict__ and plain.__getattr__("weight") is plain.weight


def calls_of_getattr(module, name):
    """How often reading an attribute calls a `__getattr__` of Python."""
    called = []

    def note(frame, event, _):
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        getattr(module, name, None)
    finally:
        sys.setprofile(None)
    return called.count("__getattr__")


def test_reading_an_attribute_looks_for_no_getattr():
    class Plain(nn.Linear):
        pass

    class Own(nn.Linear):
        def __getattr__(self, name):
            return name

    class Mixin:
        def __getattr__(self, name):
            return name

    class Mixed(Mixin, nn.Linear):
        pass

    assert Plain.__bases__ == (nn.Linear,) and Asked.__bases__ == (nn.Module,)

    class Reads(nn.Linear):
        def __getattribute__(self, name):
            return 3 if name == "missing" else super().__getattribute__(name)

    assert Reads(1, 1).missing == 3
    for cls in (nn.Linear, Plain):
        assert calls_of_getattr(cls(1, 1), "missing") == 0
    for cls in (Own, Mixed):
        assert cls(1, 1).missing == "missing" and calls_of_getattr(cls(1, 1), "weight") == 0
    assert calls_of_getattr(Asked(), "count") > 0


def test_getattr_that_is_assigned_later():
    class Late(nn.Linear):
        pass

    class Below(Late):
        pass

    m = Below(1, 1)
    assert not hasattr(m, "missing")
    Late.__getattr__ = lambda self, name: name
    assert m.missing == "missing" and isinstance(m.weight, nn.Parameter)
    del Late.__getattr__
    with pytest.raises(AttributeError, match="'Below' object has no attribute 'missing'"):
        _ = m.missing
    with pytest.raises(TypeError, match="expected a class"):
        taeda._C._use_generic_getattr(3)


def test_setattr_of_its_own():
    class Functional(nn.Module):
        """Keeps what are no leaves among its parameters, as libraries of inner loops do."""

        def __init__(self, weight):
            super().__init__()
            self._parameters = {"weight": weight}

        def __setattr__(self, name, value):
            if name in self.__dict__.get("_parameters", ()):
                self._parameters[name] = value
            else:
                object.__setattr__(self, name, value)

    m = Functional(nn.Parameter(taeda.ones(2)))
    m.weight = m.weight * 3
    assert m.weight is m._parameters["weight"] and m.weight.grad_fn is not None


def test_property_with_a_setter():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.full = nn.Parameter(taeda.ones(2))

        @property
        def half(self):
            return self.full / 2

        @half.setter
        def half(self, value):
            with taeda.no_grad():
                self.full.copy_(value * 2)

    m = Half()
    m.half = taeda.ones(2)
    assert m.full.tolist() == [2.0, 2.0]
    with pytest.raises(KeyError, match="already exists"):
        m.half = nn.Parameter(taeda.ones(2))
