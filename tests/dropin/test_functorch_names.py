"""What packages with containers of their own reach for: vmap's parts, functorch, hooks."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap

import pytest

import taeda
from taeda.compat import functorch
from taeda.compat.private import core, core_functorch, data_worker, utils
from taeda.compat.private.contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    context_decorator,
)
from taeda.compat.private.guards import active_fake_mode
from taeda.compat.private.named_members import _MISSING, swap_tensor
from taeda.compat.private.overloads import HigherOrderOperator, OpOverload, OpOverloadPacket
from taeda.compat.private.python_dispatch import is_traceable_wrapper_subclass
from taeda.func import _vmap


def run(program):
    """What a program prints that imports torch."""
    program = "import taeda.compat\ntaeda.compat.install()\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_modules_are_found():
    assert run(
        """
        import functorch, torch
        import torch._functorch.vmap as v
        from torch._C._functorch import _add_batch_dim, is_batchedtensor
        from torch._ops import HigherOrderOperator
        from torch.nn.modules.module import _global_parameter_registration_hooks
        from torch.nn.parameter import _ParameterMeta
        from torch.distributions.kl import _KL_REGISTRY
        import torch._guards
        from torch.utils._python_dispatch import TorchDispatchMode
        print(callable(v._unwrap_batched), torch.vmap is functorch.vmap, type(v).__name__)
        print(isinstance(torch.ones(1).untyped_storage(), torch.StorageBase))
        print((torch.distributions.Normal,) * 2 in _KL_REGISTRY)
        print(type(torch.nn.Parameter) is _ParameterMeta)
        try:
            from functorch import dim
        except ImportError as error:
            print(error)
        import taeda.compat, sys
        taeda.compat.uninstall()
        print("functorch" in sys.modules)
        """
    ) == [
        "True True StandIn",
        "True",
        "True",
        "True",
        "No module or name 'functorch.dim'; taeda lacks it: see docs/names.md",
        "False",
    ]


class Pair:
    """A container that is no node of a pytree."""

    def __init__(self, a, b):
        self.a, self.b = a, b


def test_vmap_asks_functions_that_a_package_puts_in_place(monkeypatch):
    parts = _vmap._process_batched_inputs, _vmap._create_batched_inputs, _vmap._unwrap_batched

    def process(in_dims, args, func):
        if not isinstance(args[0], Pair):
            return parts[0](in_dims, args, func)
        return len(args[0].a), [0], list(args), taeda.utils._pytree.tree_structure((0,))

    def create(dims, args, level, spec):
        if not isinstance(args[0], Pair):
            return parts[1](dims, args, level, spec)
        add = core_functorch._add_batch_dim
        return spec.unflatten([Pair(add(args[0].a, 0, level), add(args[0].b, 1, level))])

    def unwrap(outputs, out_dims, level, size, func):
        if not isinstance(outputs, Pair):
            return parts[2](outputs, out_dims, level, size, func)
        remove = core_functorch._remove_batch_dim
        return Pair(remove(outputs.a, level, size, 0), remove(outputs.b, level, size, 1))

    for name, part in (("process", process), ("create", create)):
        monkeypatch.setattr(_vmap, f"_{name}_batched_inputs", part)
    monkeypatch.setattr(_vmap, "_unwrap_batched", unwrap)
    pair = Pair(taeda.arange(3.0), taeda.arange(6.0).view(2, 3))
    out = taeda.vmap(lambda p: Pair(p.a + p.b.sum(), taeda.ones(4)))(pair)
    assert out.a.tolist() == [3.0, 6.0, 9.0]
    assert out.b.shape == (4, 3)
    assert taeda.vmap(lambda x: x + 1)(taeda.zeros(2)).tolist() == [1.0, 1.0]


def test_questions_about_batched_tensors():
    x = taeda.arange(6.0).view(2, 3)
    assert not core_functorch.is_batchedtensor(x)
    assert core_functorch.maybe_get_bdim(x) == core_functorch.maybe_get_level(x) == -1
    with pytest.raises(RuntimeError, match="Not a wrapped tensor"):
        core_functorch.get_unwrapped(x)

    def inner(row):
        assert core_functorch.is_batchedtensor(row)
        assert core_functorch.maybe_get_bdim(row) == 0
        assert core_functorch.maybe_get_level(row) == 1
        assert taeda.equal(core_functorch.get_unwrapped(row), x)
        return row

    taeda.vmap(inner)(x)


def test_functional_modules():
    model = taeda.nn.Linear(2, 2)
    function, params = functorch.make_functional(model)
    x = taeda.ones(1, 2)
    assert taeda.equal(function(params, x), model(x))
    assert params[0] is not model.weight and params[0].requires_grad
    zeros = tuple(taeda.zeros_like(p) for p in params)
    assert function(zeros, x).eq(0).all()
    assert not functorch.make_functional(model, disable_autograd_tracking=True)[1][0].requires_grad
    norm = taeda.nn.BatchNorm1d(2).eval()
    with pytest.raises(ValueError, match="has buffers"):
        functorch.make_functional(norm)
    function, params, buffers = functorch.make_functional_with_buffers(norm)
    assert taeda.equal(function(params, buffers, x), norm(x))
    models = [taeda.nn.Linear(2, 2) for _ in range(3)]
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    out = taeda.vmap(function, (0, 0, None))(params, buffers, x)
    taeda.testing.assert_close(out, taeda.stack([m(x) for m in models]))


def test_context_managers_that_decorate():
    class Setting(_DecoratorContextManager):
        value = 0

        def __init__(self, new):
            self.new = new

        def __enter__(self):
            self.old, Setting.value = Setting.value, self.new

        def __exit__(self, *exc):
            Setting.value = self.old

        def clone(self):
            return Setting(self.new)

    @Setting(1)
    def read():
        return Setting.value

    @Setting(2)
    def steps():
        yield Setting.value

    @Setting(3)
    class Made:
        def __init__(self):
            self.value = Setting.value

    assert (read(), list(steps()), Made().value, Setting.value) == (1, [2], 3, 0)
    assert context_decorator(contextlib.nullcontext(), read.__wrapped__)() == 0
    with pytest.raises(AssertionError, match="both callable"):
        context_decorator(Setting(4), len)
    assert context_decorator(lambda: Setting(5), read.__wrapped__)() == 5

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self):
            Setting.value = 9

        def __exit__(self, *exc):
            Setting.value = 0

    assert Plain(read.__wrapped__)() == Plain()(read.__wrapped__)() == 9
    with pytest.raises(NotImplementedError):
        _DecoratorContextManager().__enter__()


def test_swap_tensor():
    model = taeda.nn.BatchNorm1d(2)
    weight, plain = model.weight, taeda.zeros(2)
    assert swap_tensor(model, "weight", plain) is weight
    assert model.weight is plain and "weight" in model._parameters
    mean = swap_tensor(model, "running_mean", plain)
    assert model.running_mean is plain and mean is not plain
    assert swap_tensor(model, "extra", plain, allow_missing=True) is _MISSING
    assert swap_tensor(model, "extra", _MISSING) is plain and not hasattr(model, "extra")
    assert swap_tensor(model, "weight", _MISSING) is plain and "weight" not in model._parameters
    for arguments, error in (
        ((3, "weight", plain), TypeError),
        ((model, "bias", 3), TypeError),
        ((model, "a.b", plain), KeyError),
        ((model, "", plain), KeyError),
        ((model, "none", plain), AttributeError),
        ((model, "training", plain), TypeError),
    ):
        with pytest.raises(error):
            swap_tensor(*arguments)


def test_small_questions():
    x = taeda.ones(2, 2)
    assert core._is_alias_of(x[0], x) and not core._is_alias_of(x.clone(), x)
    assert not core._is_torch_function_mode_enabled()
    with taeda.overrides.TorchFunctionMode():
        assert core._is_torch_function_mode_enabled()
    assert utils._get_available_device_type() is None
    assert utils._get_device_module("cuda") is taeda.cuda
    with pytest.raises(RuntimeError, match="'torch.nowhere'"):
        utils._get_device_module("nowhere")
    assert active_fake_mode() is None
    # As PyTorch's workers seed NumPy.
    assert data_worker._generate_state(5, 1) == [3025039489, 3528014902, 3507927383, 2601490367]
    with pytest.raises(TypeError, match="there are none"):
        HigherOrderOperator("name")
    add = taeda.ops.aten.add
    assert isinstance(add, OpOverloadPacket) and isinstance(add.default, OpOverload)


def test_classes_that_say_how_they_are_taken_apart():
    class Wrapped(taeda.Tensor):
        def __tensor_flatten__(self): ...

        @staticmethod
        def __tensor_unflatten__(*args): ...

    x = taeda.ones(1)
    assert is_traceable_wrapper_subclass(x.as_subclass(Wrapped))
    assert not is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(3)


def test_where_is_handed_to_containers_as_itself():
    class Container:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is taeda.where, types, len(args)

    condition = taeda.tensor([True])
    assert taeda.where(condition, Container(), 0) == (True, (Container,), 3)
    assert taeda.where(Container()) == (True, (Container,), 1)


def test_from_file_says_where_it_cannot_map_to(tmp_path):
    path = str(tmp_path / "data")
    x = taeda.from_file(
        path, True, 2, device="cpu", layout=taeda.strided, pin_memory=False, dtype=taeda.int64
    )
    assert x.fill_(3).tolist() == [3, 3]
    for given, text in (
        (dict(device="meta"), "not meta's"),
        (dict(layout=taeda.sparse_coo), "must be strided"),
        (dict(pin_memory=True), "cannot be pinned"),
    ):
        with pytest.raises(RuntimeError, match=text):
            taeda.from_file(path, size=2, **given)


def test_registration_hooks_are_in_a_dictionary():
    from taeda.nn.modules import module

    before = len(module._global_parameter_registration_hooks)
    handle = module.register_module_parameter_registration_hook(lambda *args: None)
    assert len(module._global_parameter_registration_hooks) == before + 1
    handle.remove()
