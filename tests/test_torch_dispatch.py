"""__torch_dispatch__ of Tensor subclasses: what classes are given and may give, copies and files."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode, no_dispatch
from tests import dispatch_classes
from tests.dispatch_classes import Logging, Masked, Scaled, Two

aten = taeda.ops.aten


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    Logging.log.clear()


# ---- what a handler is given, and may give ------------------------------------------------------


def test_what_a_class_is_given() -> None:
    x = Logging(taeda.ones(2, 2), requires_grad=True)
    x.add(1, alpha=3)
    (func, types, args, kwargs) = Logging.log[0]
    assert func is aten.add.Tensor and types == (Logging,)
    assert args[0] is x and args[1] == 1 and kwargs == {"alpha": 3}


class Deaf(Logging):
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append((func, cls))
        return NotImplemented


class Stranger(taeda.Tensor):
    __torch_function__ = taeda._C._disabled_torch_function_impl
    asked: list[Any] = []

    @staticmethod
    def __new__(cls) -> Any:
        return taeda.Tensor._make_wrapper_subclass(cls, (2,))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(types)
        return NotImplemented


def test_subclasses_are_asked_first_and_then_the_next() -> None:
    deaf, x = Deaf(taeda.ones(2)), Logging(taeda.ones(2))
    assert (x + deaf).elem.tolist() == [2, 2]
    assert Logging.log[0] == (aten.add.Tensor, Deaf)
    assert Logging.log[1][1] == (Deaf, Logging)


def test_nobody_answers() -> None:
    stranger = Stranger()
    with pytest.raises(
        TypeError, match=r"(?s)Multiple dispatch failed for 'aten.mul.Tensor'.*Deaf"
    ):
        Deaf(taeda.ones(2)) * stranger
    assert Stranger.asked[-1] == (Deaf, Stranger)
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        taeda.cat([taeda.ones(2), stranger])
    assert (taeda.ones(2) * 2).tolist() == [2, 2]


def test_modes_are_asked_before_classes() -> None:
    seen: list[Any] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((func, types))
            return func(*args, **(kwargs or {}))

    class Passes(Mode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented if types else func(*args, **(kwargs or {}))

    x = Logging(taeda.ones(2))
    with Mode():
        y = x.sin()
    assert type(y) is Logging and seen[0] == (aten.sin.default, (Logging,))
    assert len(Logging.log) == 1 and seen[1:] == []  # set aside, also for what the class calls
    with Passes():
        assert type(x.sin()) is Logging
        with pytest.raises(TypeError, match="(?s)Multiple dispatch failed.*mode object.*subclass"):
            Stranger().sin()


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("x.sin()", 1, "sin.*must give a Tensor, not int"),
        ("x.sin()", None, "must give a Tensor, not NoneType"),
        ("x.max(0)", 1, "must give several Tensors, not int"),
        ("x.max(0)", (1, 2), "must give a Tensor, not int"),
        ("x.max(0)", (), "must give 2 Tensors, not 0"),
        ("x.unbind()", None, "must give several Tensors"),
        ("x[0].item()", "a", "must give a"),
        ("float(x.sum())", taeda.ones(1), "number, not Tensor"),
        ("x.add_(1)", 3, "must give a Tensor, not int"),
    ],
)
def test_wrong_results_are_refused(call: str, given: Any, message: str) -> None:
    class Gives(Logging):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func in (aten.select.int, aten.sum.default):
                return cls(taeda.ones(()))
            return given

    x = Gives(taeda.ones(2))
    with pytest.raises(TypeError, match=message):
        eval(call, {"x": x})


def test_a_handler_that_returns_its_argument() -> None:
    class Same(Logging):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0] if func is not aten.detach.default else cls(args[0].elem)

    x = Same(taeda.ones(2), requires_grad=True)
    y = x.sin()
    assert y is not x and x.is_leaf and y.grad_fn is not None

    class Always(Logging):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0]

    with pytest.raises(RuntimeError, match=r"new tensor.*aten\.detach"):
        Always(taeda.ones(2), requires_grad=True).sin()


def test_in_place_operations_return_what_they_change() -> None:
    class Silent(Logging):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            super().__torch_dispatch__(func, types, args, kwargs)

    x = Silent(taeda.ones(2))
    version = x._version
    assert x.mul_(3) is x and x.elem.tolist() == [3, 3] and x._version > version
    out = taeda.empty(2)
    y = Logging(taeda.ones(2))
    assert taeda.add(y, 1, out=out) is out and out.tolist() == [2, 2]


def test_a_saved_value_that_was_changed_is_found() -> None:
    x = Logging(taeda.ones(2), requires_grad=True)
    y = x * 1
    z = y.sin()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_errors_of_a_handler_pass_through() -> None:
    class Fails(Logging):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    x = Fails(taeda.ones(2), requires_grad=True)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            x.sin()
    w = taeda.ones(1, requires_grad=True)
    assert taeda.is_grad_enabled() and (w * 2).requires_grad


# ---- tensors without memory ---------------------------------------------------------------------

READS = [
    "x.tolist()", "x.numpy()", "memoryview(x)", "x.untyped_storage()", "x.storage()",
    "taeda.from_dlpack(x)", "x.__dlpack__()", "x.share_memory_()", "x.resize_(3)", "x.set_(x)",
    "taeda.ones(2).set_(x)", "taeda.Generator().set_state(x)", "x.data.numpy()",
    "setattr(taeda.ones(2), 'data', x)", "setattr(x, 'data', taeda.ones(2))",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_memory_that_is_not_there_is_not_read(text: str) -> None:
    x = Logging(taeda.ones(2))
    with pytest.raises((RuntimeError, TypeError, NotImplementedError, BufferError)):
        eval(text, {"x": x, "taeda": taeda})


def test_kernels_refuse_placeholders() -> None:
    x = Logging(taeda.ones(2))
    with no_dispatch():
        for call in ("x + 1", "x.clone()", "x.item()", "x[0]", "x.add_(1)", "taeda.cat([x, x])"):
            with pytest.raises(RuntimeError, match="no memory|elements"):
                eval(call, {"x": x, "taeda": taeda})
    bare = taeda.Tensor._make_subclass(taeda.nn.Parameter, x)
    with pytest.raises(RuntimeError, match="no memory"):
        bare * 2
    with pytest.raises(RuntimeError, match="no memory"):
        taeda.Tensor.__torch_dispatch__(aten.sin.default, (), (x,))


def test_classes_with_memory() -> None:
    class Logs(taeda.Tensor):
        names: list[str] = []
        __torch_function__ = taeda._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, data: Any) -> Any:
            return taeda.Tensor._make_subclass(cls, data, data.requires_grad)

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.names.append(str(func))
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    data = taeda.ones(2, requires_grad=True)
    x = Logs(data)
    y = x * 2
    assert Logs.names == ["aten.mul.Tensor"] and type(y) is taeda.Tensor
    y.sum().backward()
    assert x.grad.tolist() == [2, 2] and y.tolist() == [2, 2]
    assert repr(x) == "Logs([1., 1.], requires_grad=True)"
    undone = type("Undone", (Logs,), {"__torch_dispatch__": taeda._C._disabled_torch_dispatch_impl})
    Logs.names.clear()
    assert (undone(data) * 2).tolist() == [2, 2] and Logs.names == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("taeda.Tensor, (2,)", TypeError, "must define __torch_dispatch__"),
        ("taeda.nn.Parameter, (2,)", TypeError, "must define __torch_dispatch__"),
        ("int, (2,)", TypeError, "subclass of Tensor"),
        ("C, 2.5", TypeError, "size"),
        ("C, (2,), strides=(1, 2)", RuntimeError, "strides"),
        ("C, (-2,)", RuntimeError, "negative"),
        ("C, (2,), strides=(-1,)", RuntimeError, "negative strides"),
        ("C, (2,), storage_offset=-1", RuntimeError, "offset"),
        ("C, (2**40, 2**40)", RuntimeError, "overflow"),
        ("C, (2,), dtype=taeda.int64, requires_grad=True", RuntimeError, "floating point"),
        ("C, (2,), layout=taeda.sparse_coo", NotImplementedError, "layout"),
        ("C, (2,), dispatch_sizes_strides_policy='sizes'", NotImplementedError, "policy"),
        ("C, (2,), pin_memory=True", NotImplementedError, "pin_memory"),
        ("C, (2,), dispatch_device=True", TypeError, "dispatch_device"),
        ("C, (2,), device='nowhere'", RuntimeError, "nowhere"),
        ("C, (2,), dtype='x'", TypeError, "dtype"),
    ],
)
def test_wrong_arguments(arguments: str, error: type, message: str) -> None:
    names = {"taeda": taeda, "C": Logging}
    with pytest.raises(error, match=message):
        eval(f"taeda.Tensor._make_wrapper_subclass({arguments})", names)


def test_huge_placeholders_cost_nothing() -> None:
    x = taeda.Tensor._make_wrapper_subclass(Logging, (2**40,), dtype=taeda.float64)
    assert x.shape == (2**40,) and x.nbytes == 2**43 and x.data_ptr() == 0


def test_repr_without_one() -> None:
    class Bare(Logging):
        __repr__ = taeda.Tensor.__repr__  # type: ignore[assignment]

    x = Bare(taeda.ones(3, 2), requires_grad=True)
    assert repr(x) == "Bare(..., size=(3, 2), requires_grad=True)"
    assert (
        str(x.double()) == "Bare(..., size=(3, 2), dtype=taeda.float64, grad_fn=<ToCopyBackward0>)"
    )
    assert f"{x.sum().detach()}"


# ---- copies and files ---------------------------------------------------------------------------


def test_copies() -> None:
    x = Logging(taeda.ones(2), requires_grad=True)
    x.note = ["mine"]
    x.grad = Logging(taeda.zeros(2))
    y = copy.deepcopy(x)
    assert type(y) is Logging and y is not x and y.requires_grad and y.note == ["mine"]
    assert y.note is not x.note and y.elem.data_ptr() != x.elem.data_ptr()
    assert type(y.grad) is Logging
    z = copy.copy(x)
    assert type(z) is Logging and z.elem is x.elem and z.note is x.note


def test_pickles() -> None:
    x = Two(taeda.ones(2), taeda.zeros(2))
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Two and y.a.tolist() == [1, 1] and y.b.tolist() == [0, 0]
    assert y.shape == (2,) and not y.requires_grad
    p = taeda.nn.Parameter(x)
    q = pickle.loads(pickle.dumps(p))
    assert isinstance(q, taeda.nn.Parameter) and type(q) is Two and q.requires_grad


def test_files() -> None:
    net = taeda.nn.Linear(2, 2)
    net.weight = taeda.nn.Parameter(Two(net.weight.data, net.weight.data * 2))
    file = io.BytesIO()
    taeda.save(net.state_dict(), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        taeda.load(file)
    file.seek(0)
    with taeda.serialization.safe_globals([Two]):
        state = taeda.load(file)
    assert type(state["weight"]) is Two
    assert taeda.equal(state["weight"].b, net.weight.b)
    other = taeda.nn.Linear(2, 2)
    other.weight = taeda.nn.Parameter(Two(taeda.zeros(2, 2), taeda.zeros(2, 2)))
    other.load_state_dict(state)
    assert taeda.equal(other.weight.b, net.weight.b)


def test_files_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    theirs = dispatch_classes.classes_of(torch)
    file = io.BytesIO()
    taeda.save(Two(taeda.ones(2), taeda.arange(2.0)), file)
    file.seek(0)
    # The class is found under the name that the file gives, which is taeda's: its like is put there.
    own = dispatch_classes.Two
    dispatch_classes.Two = theirs.Two  # type: ignore[misc]
    try:
        read = torch.load(file, weights_only=False)
    finally:
        dispatch_classes.Two = own  # type: ignore[misc]
    assert type(read) is theirs.Two and read.b.tolist() == [0, 1]


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_step_through_the_class(name: str) -> None:
    def weights(wrap: Any) -> Any:
        p = taeda.nn.Parameter(wrap(taeda.linspace(-1, 1, 4)))
        optimizer = getattr(taeda.optim, name)([p], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p

    wrapped = weights(lambda t: Two(t, t * 2 + 1))
    assert type(wrapped) is Two
    assert taeda.allclose(wrapped.a, weights(lambda t: t), atol=1e-6)
    assert taeda.allclose(wrapped.b, weights(lambda t: t * 2 + 1), atol=1e-6)


def test_modules_are_cast() -> None:
    net = taeda.nn.Linear(2, 2)
    net.weight = taeda.nn.Parameter(Two(net.weight.data, net.weight.data))
    net.double()
    assert type(net.weight) is Two and net.weight.a.dtype == taeda.float64
    assert isinstance(net.weight, taeda.nn.Parameter) and net(taeda.ones(1, 2).double()) is not None


def test_checkpoint_and_hooks_on_saved_tensors() -> None:
    from taeda.utils.checkpoint import checkpoint

    x = Logging(taeda.ones(2), requires_grad=True)
    checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum().backward()
    other = Logging(taeda.ones(2), requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = other.sin().exp()
    y.sum().backward()
    assert taeda.equal(x.grad.elem, other.grad.elem)
    plain = taeda.ones(2, requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: x):
        y = plain.sin()
    with pytest.raises(RuntimeError, match="no memory"):
        y.sum().backward()


def test_masked_and_scaled_print() -> None:
    assert "Masked" in repr(Masked(taeda.ones(2), taeda.ones(2).bool()))
    assert "Scaled" in repr(Scaled.of(taeda.ones(2)))
