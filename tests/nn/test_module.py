"""Module: attributes, live tables, iteration, conversion."""

import copy
import dataclasses
import gc
import weakref

import pytest

import taeda
from taeda import nn
from tests.nn.trees import Leaf, Tree, names


class NoInit(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(taeda.ones(2))
        self.child = nn.Identity()


@dataclasses.dataclass
class Data(nn.Module):
    size: int
    child: nn.Module
    w: nn.Parameter = None
    scale: float = 2.0

    def __post_init__(self):
        self.w = nn.Parameter(taeda.ones(self.size))

    def forward(self, x):
        return self.child(x) * self.w * self.scale


def test_attributes_and_tables_are_one():
    m = Leaf()
    assert m.w is m._parameters["w"] and m.__dict__["w"] is m.w
    assert m.none is None and m.b is m._buffers["b"]
    new = nn.Parameter(taeda.zeros(2))
    m._parameters["w"] = new
    assert m.w is new
    m.w = other = nn.Parameter(taeda.zeros(3))
    assert m._parameters["w"] is other
    del m._parameters["w"]
    assert not hasattr(m, "w")
    m.w = new
    del m.w
    assert "w" not in m._parameters
    with pytest.raises(AttributeError, match="'Leaf' object has no attribute 'w'"):
        m.w


def test_tables_through_every_dict_method():
    m = nn.Module()
    a, b, c = (nn.Identity() for _ in range(3))
    m._modules.update({"a": a}, b=b)
    assert m.a is a and m.b is b
    assert m._modules.setdefault("c", c) is c and m.c is c
    assert m._modules.pop("a") is a and not hasattr(m, "a")
    assert m._modules.pop("a", None) is None
    with pytest.raises(KeyError):
        m._modules.pop("a")
    assert m._modules.popitem() == ("c", c) and not hasattr(m, "c")
    m._modules |= {"d": a}
    assert m.d is a
    m._modules.clear()
    assert not hasattr(m, "b") and not hasattr(m, "d")
    m.w = nn.Parameter(taeda.ones(1))
    m._parameters = {}
    assert not hasattr(m, "w")
    m._parameters["v"] = p = nn.Parameter(taeda.ones(1))
    assert m.v is p
    assert isinstance(m._parameters, dict) and dict(m._parameters) == {"v": p}


def test_a_name_moves_between_tables():
    m = nn.Module()
    m.x = 3
    m.x = p = nn.Parameter(taeda.ones(1))
    assert "x" in m._parameters and m.x is p
    del m.x
    m.x = child = nn.Identity()
    assert "x" not in m._parameters and m._modules["x"] is child and m.x is child
    m.x = nn.Buffer(taeda.ones(1), persistent=False)
    assert "x" in m._buffers and "x" not in m._modules and "x" in m._non_persistent_buffers_set
    m.x = p
    assert list(dict(m.named_parameters())) == ["x"] and not m._non_persistent_buffers_set
    m.x = None
    assert m.x is None and m._parameters["x"] is None


def test_assignments_like_torch(torch):
    def attempt(m, lib, code):
        env = {"m": m, "lib": lib, "nn": lib.nn}
        try:
            exec(code, env)
        except Exception as error:
            return type(error)
        return None

    codes = [
        "m.weight = 3",
        "m.weight = lib.zeros(2)",
        "m.weight = None",
        "m.mean = 3",
        "m.mean = None",
        "m.mean = lib.zeros(2)",
        "m.child = 3",
        "m.child = None",
        "m.child = lib.zeros(1)",
        "m.register_parameter('a.b', None)",
        "m.register_parameter('', None)",
        "m.register_parameter(3, None)",
        "m.register_parameter('forward', None)",
        "m.register_parameter('x', lib.zeros(2))",
        "m.register_parameter('weight', nn.Parameter(lib.zeros(3)))",
        "m.register_parameter('mean', None)",
        "m.register_buffer('a.b', None)",
        "m.register_buffer('', None)",
        "m.register_buffer(3, None)",
        "m.register_buffer('weight', None)",
        "m.register_buffer('x', 3)",
        "m.add_module('a.b', nn.ReLU())",
        "m.add_module('', nn.ReLU())",
        "m.add_module(3, nn.ReLU())",
        "m.add_module('forward', nn.ReLU())",
        "m.add_module('x', 3)",
        "m.add_module('x', None)",
        "m.forward = nn.Parameter(lib.zeros(1))",
        "m.train(3)",
        "m()",
        "del m.nothing",
        "nn.Module(3)",
        "nn.Module(a=3)",
        "m.get_submodule('child.x')",
        "m.get_submodule('child.0.weight')",
        "m.get_parameter('mean')",
        "m.get_parameter('nothing')",
        "m.get_buffer('weight')",
        "m.get_buffer('mean')",
        "m.set_submodule('', nn.ReLU())",
        "m.set_submodule('x.y', nn.ReLU())",
        "m.set_submodule('new', nn.ReLU())",
        "m.set_submodule('new', nn.ReLU(), strict=True)",
        "m.set_submodule('child.0', nn.ReLU(), strict=True)",
        "m.set_submodule('child', 3)",
        "m.to(lib.int32)",
        "m.to()",
        "m.to('nowhere')",
        "m.to(foo=3)",
        "m.to(lib.float64, lib.float32)",
        "m.get_extra_state()",
        "m.set_extra_state(3)",
    ]
    for code in codes:
        both = []
        for lib in (taeda, torch):
            m = lib.nn.Module()
            m.weight = lib.nn.Parameter(lib.zeros(2))
            m.register_buffer("mean", lib.zeros(2))
            m.child = lib.nn.Sequential(lib.nn.Linear(2, 2))
            both.append(attempt(m, lib, code))
        assert both[0] == both[1], code


def test_messages_name_what_was_given():
    m = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign 'int' as parameter 'weight'"):
        m.weight = 3
    with pytest.raises(KeyError, match="parameter name can.*t contain"):
        m.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        m.add_module("forward", nn.ReLU())
    with pytest.raises(ValueError, match="non-leaf"):
        nn.Module().register_parameter("w", _non_leaf_parameter())


def _non_leaf_parameter():
    p = nn.Parameter(taeda.ones(2))
    product = p * 2
    product._is_param = True
    return product


def test_super_init_may_be_forgotten():
    m = NoInit()
    assert [n for n, _ in m.named_parameters()] == ["w"] and m.training
    assert [n for n, _ in m.named_children()] == ["child"]


def test_dataclass_module():
    m = Data(3, Leaf())
    assert (
        [n for n, _ in m.named_parameters()] == ["w", "child.w"]
        or [n for n, _ in m.named_parameters()] == ["child.w", "w"]
        or len(list(m.parameters())) == 2
    )
    assert len(list(m.modules())) == 2
    m.child = nn.Identity()
    assert tuple(m(taeda.ones(3)).shape) == (3,)
    assert m.train(False).training is False
    assert list(copy.deepcopy(m).state_dict()) == ["w"]


def test_call_super_init():
    class Mixin:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Mixin):
        call_super_init = True

        def __init__(self):
            super().__init__(5)

    assert Both().value == 5


def test_new_of_other_bases_is_called():
    class Mixin:
        def __new__(cls, value):
            self = super().__new__(cls)
            self.seen = value
            return self

    class Both(nn.Module, Mixin):
        def __init__(self, value):
            super().__init__()

    assert Both(3).seen == 3


def test_iteration():
    m = Tree()
    assert names(m.named_parameters()) == ["own", "left.w", "right.0.w"]
    assert names(m.named_parameters(remove_duplicate=False)) == [
        "own", "left.w", "right.0.w", "same.w",
    ]  # fmt: skip
    assert names(m.named_parameters(prefix="p", recurse=False)) == ["p.own"]
    assert names(m.named_buffers()) == [
        "left.b",
        "left.temporary",
        "right.0.b",
        "right.0.temporary",
    ]
    assert names(m.named_children()) == ["left", "right"]
    assert names(m.named_modules()) == ["", "left", "right", "right.0", "right.1"]
    assert names(m.named_modules(remove_duplicate=False)) == [
        "", "left", "right", "right.0", "right.1", "same",
    ]  # fmt: skip
    memo = {m.left}
    assert names(m.named_modules(memo, "p")) == ["p", "p.right", "p.right.0", "p.right.1"]
    assert m.right in memo
    assert list(m.modules()) == [m, m.left, m.right, m.right[0], m.right[1]]
    assert list(m.parameters(recurse=False)) == [m.own]
    assert len(list(m.buffers())) == 4 and len(list(m.children())) == 2


def test_named_modules_heeds_a_childs_own():
    class Hidden(nn.Sequential):
        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            yield prefix, self

    m = nn.Sequential(Hidden(nn.Identity()))
    assert names(m.named_modules()) == ["", "0"]


def test_lookup():
    m = Tree()
    assert m.get_submodule("right.0") is m.right[0] and m.get_submodule("") is m
    assert m.get_parameter("left.w") is m.left.w and m.get_buffer("left.b") is m.left.b
    new = nn.Identity()
    m.set_submodule("right.0", new)
    assert m.right[0] is new
    assert "left" in dir(m) and "0" not in dir(m.right)


def test_modes_apply_and_grads():
    m = Tree()
    assert m.eval() is m and not any(x.training for x in m.modules())
    assert m.train().right[1].training
    seen = []
    m.apply(seen.append)
    assert seen == [m.left, m.right[0], m.right[1], m.right, m]
    m(taeda.ones(2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.own.grad.tolist() == [0.0]
    m.zero_grad()
    assert m.own.grad is None
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())


def test_conversion_keeps_parameters():
    m = Tree()
    before = list(m.parameters())
    m(taeda.ones(2)).sum().backward()
    grad = m.own.grad
    assert m.double() is m
    assert all(a is b for a, b in zip(before, m.parameters(), strict=True))
    assert m.own.dtype == m.left.b.dtype == m.own.grad.dtype == taeda.float64
    assert m.own.grad is grad or m.own.grad.dtype == taeda.float64
    assert m.half().own.dtype == taeda.float16
    assert m.bfloat16().own.dtype == taeda.bfloat16
    assert m.float().own.dtype == taeda.float32
    assert m.to(taeda.float64).own.dtype == taeda.float64
    assert m.to(taeda.ones(1)).own.dtype == taeda.float32
    assert m.to("cpu", taeda.float64).own.dtype == taeda.float64
    assert m.to(device="cpu", dtype=taeda.float32, non_blocking=True).own.dtype == taeda.float32
    assert m.cpu() is m and m.own.is_leaf and m.own.requires_grad
    assert m.type(taeda.float64).own.dtype == taeda.float64


def test_conversion_leaves_integers():
    m = nn.BatchNorm1d(2).half()
    assert m.running_mean.dtype == taeda.float16
    assert m.num_batches_tracked.dtype == taeda.int64


def test_memory_format():
    m = nn.Conv2d(4, 4, 3).to(memory_format=taeda.channels_last)
    assert m.weight.is_contiguous(memory_format=taeda.channels_last)
    assert m.bias.is_contiguous()


def test_meta_device():
    m = nn.Linear(2, 3, device="meta")
    assert m.weight.is_meta
    with pytest.raises(NotImplementedError, match="to_empty"):
        m.to("cpu")
    assert m.to_empty(device="cpu") is m
    assert isinstance(m.weight, nn.Parameter) and m.weight.device.type == "cpu"
    assert m.weight.requires_grad


def test_share_memory():
    m = nn.Linear(2, 2).share_memory()
    assert m.weight.is_shared()


def test_repr(torch):
    class Extra(nn.Sequential):
        def extra_repr(self):
            return "one\ntwo"

    class TorchExtra(torch.nn.Sequential):
        extra_repr = Extra.extra_repr

    TorchExtra.__name__ = "Extra"
    for ours, theirs in (
        (nn.Module(), torch.nn.Module()),
        (Extra(), TorchExtra()),
        (Extra(nn.ReLU(), nn.Sequential(nn.Tanh())),
         TorchExtra(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Tanh()))),
    ):  # fmt: skip
        assert repr(ours) == repr(theirs)


def test_no_cycle_keeps_a_module_alive():
    gc.collect()
    gc.disable()
    try:
        m = Tree()
        m(taeda.ones(2)).sum().backward()
        gone = weakref.ref(m)
        del m
        assert gone() is None
    finally:
        gc.enable()


def test_modules_hash_by_identity():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    assert len({a, b, a}) == 2 and a != b


def test_assignment_registers_by_the_methods():
    seen = []

    class Watched(nn.Module):
        def register_parameter(self, name, param):
            seen.append(name)
            super().register_parameter(name, param)

        def register_buffer(self, name, tensor, persistent=True):
            seen.append(name)
            super().register_buffer(name, tensor, persistent)

    m = Watched()
    m.weight = nn.Parameter(taeda.ones(2))
    m.mean = nn.Buffer(taeda.zeros(2))
    m.weight = nn.Parameter(taeda.zeros(2))
    assert seen == ["weight", "mean", "weight"] and list(m.state_dict()) == ["weight", "mean"]
    with pytest.raises(KeyError, match="forward"):
        m.forward = nn.Parameter(taeda.ones(2))


def test_tables_may_be_replaced_without_setattr():
    m = nn.Linear(2, 2)
    placeholders = {"weight": "w", "bias": "b"}
    object.__setattr__(m, "_parameters", placeholders)
    assert m.weight == "w" and m.__dict__["_parameters"] == placeholders
    m._parameters["weight"] = taeda.ones(2, 2)
    assert m.weight.sum().item() == 4


def test_a_module_does_not_take_a_parameters_place():
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign 'taeda.nn.modules.activation.ReLU'|ReLU"):
        layer.weight = nn.ReLU()
    assert isinstance(layer.weight, nn.Parameter) and layer(taeda.ones(1, 2)).shape == (1, 2)


def test_to_refuses_copy():
    with pytest.raises(RuntimeError, match="does not accept copy"):
        nn.Linear(2, 2).to("cpu", copy=True)
