"""TorchDispatchMode: what is seen below autograd, beside PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode

aten = taeda.ops.aten


def log_of(lib: Any, run: Callable[[Any], Any]) -> list[str]:
    """The operations that a mode of the library sees."""
    if lib is taeda:
        base: Any = TorchDispatchMode
    else:
        from torch.utils._python_dispatch import TorchDispatchMode as base

    names: list[str] = []

    class Log(base):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        run(lib)
    return names


class Log(TorchDispatchMode):
    def __init__(self, tag: str = "") -> None:
        self.names: list[str] = []
        self.calls: list[tuple[Any, ...]] = []
        self.tag = tag

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(self.tag + str(func))
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))


def names(lib: Any) -> dict[str, Any]:
    found = {"lib": lib, "x": lib.ones(2, 3), "s": lib.tensor(1.0)}
    return {**found, "i": lib.tensor([0]), "j": lib.tensor([[0]])}


SAME = [
    "x + x", "x + 1", "1 + x", "x - x", "x - 2.0", "x * 2", "x / 2", "x % 2",
    "x == 1", "x < x", "x >= 0.5", "x != x", "x ** 2", "x ** x", "2 ** x", "-x", "x.abs()",
    "lib.absolute(x)", "lib.multiply(x, 2)", "lib.arctan(x)", "lib.greater(x, 1)",
    "lib.div(x, 2, rounding_mode='floor')", "lib.fmod(x, 2)", "lib.remainder(x, x)",
    "x.add_(1)", "x.mul_(x)", "x.zero_()", "x.fill_(2)", "x.fill_(s)", "x.copy_(x + 1)",
    "x.clamp(0, 1)", "x.clamp(min=x)", "x.clamp_(0)", "x.sum()", "x.sum(0)", "x.sum((0, 1))",
    "x.mean()", "x.mean(0)", "x.prod()", "x.prod(1)", "x.amax(0)", "x.any()", "x.all(0)",
    "x.max()", "x.max(0)", "x.min(x)", "x.median()", "x.argmax()", "x.cumsum(0)", "x.sort(stable=True)",
    "x.exp()", "x.sigmoid()", "x.relu()", "x.tanh()", "lib.nn.functional.gelu(x)",
    "x.t()", "x.transpose(0, 1)", "x.permute(1, 0)", "x.view(3, 2)", "x.unsqueeze(0)",
    "x.squeeze(0)", "x.squeeze()", "x.expand(4, 2, 3)", "x.select(0, 1)", "x.unbind(0)", "x.split(1)",
    "x.detach()", "x.clone()", "lib.cat([x, x])", "lib.stack([x, x])", "x.gather(0, lib.zeros(1, 3, dtype=lib.int64))",
    "lib.mm(x, x.t())", "x @ x.t()", "x @ x[0]", "lib.bmm(x[None], x[None].transpose(1, 2))",
    "lib.addmm(x[0, :2], x, x.t())", "x.tril()", "lib.where(x > 0, x, x)",
    "x.masked_fill(x > 0, 1.0)", "x.masked_fill(x > 0, s)", "lib.lerp(x, x, 0.5)",
    "lib.lerp(x, x, x)", "x.index_select(0, i)", "x.scatter(0, j, 2.0)",
    "x.scatter(0, j, x)", "x.topk(1)", "x.index_fill(0, i, 1.0)",
    "x.round()", "x.round(decimals=1)", "x.eq_(1)", "lib.eye(2)", "lib.eye(2, 3)", "lib.zeros_like(x)",
    "x.bernoulli()", "x.bernoulli_(0.5)", "x.uniform_()", "x.normal_()", "lib.maximum(x, x)",
    "lib.add(x, x, out=lib.empty(2, 3))", "lib.mm(x, x.t(), out=lib.empty(2, 2))",
    "x[0]", "x[i]", "x[x > 0]", "x.reshape(6)", "x.flatten()", "x.double()", "x.chunk(2)",
    "x.repeat(2, 1)", "x.norm()", "x.argsort()", "lib.arange(3)", "lib.full((2,), 1.0)", "x.mT",
    "lib.nn.functional.layer_norm(x, (3,))", "lib.randn(2, requires_grad=True)",
    "lib.equal(x, x)", "lib.bitwise_and(x.bool(), True)", "lib.xlogy(x, 2)", "x.index_add(0, i, x[:1])",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_names_are_those_of_pytorch(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = names(taeda), names(torch)
    assert log_of(taeda, lambda lib: eval(text, ours)) == log_of(
        torch, lambda lib: eval(text, theirs)
    )


def test_forward_and_backward_are_seen() -> None:
    def run(lib: Any) -> None:
        w = lib.ones(3, 3, requires_grad=True)
        x = lib.ones(2, 3)
        ((x @ w).sigmoid() * 2).sum().backward()

    torch = pytest.importorskip("torch")
    ours, theirs = log_of(taeda, run), log_of(torch, run)
    for name in ("aten.mm.default", "aten.sigmoid.default", "aten.mul.Tensor", "aten.sum.default"):
        assert name in ours and name in theirs
    forward = ours.index("aten.sum.default")
    assert "aten.mm.default" in ours[forward:] and "aten.mm.default" in theirs[forward:]


def test_gradients_are_those_without() -> None:
    def gradients() -> list[Any]:
        taeda.manual_seed(0)
        net = taeda.nn.Sequential(
            taeda.nn.Conv2d(1, 4, 3), taeda.nn.BatchNorm2d(4), taeda.nn.ReLU(),
            taeda.nn.MaxPool2d(2), taeda.nn.Flatten(), taeda.nn.Linear(36, 5),
            taeda.nn.LayerNorm(5), taeda.nn.Dropout(0.5), taeda.nn.GELU(),
        )  # fmt: skip
        x = taeda.rand(3, 1, 8, 8)
        loss = taeda.nn.functional.cross_entropy(net(x), taeda.tensor([0, 1, 2]))
        loss.backward()
        return [loss.item(), *(p.grad for p in net.parameters())]

    without = gradients()
    with Log() as log:
        found = gradients()
    assert log.names
    taeda.testing.assert_close(found, without)


def test_what_a_mode_is_given() -> None:
    w = taeda.nn.Parameter(taeda.ones(2, 2))
    with Log() as log:
        y = w.mul(2.5)
        taeda.sum(w, (0, 1), dtype=taeda.float64)
        taeda.cat([w, y], -1)
        w.add(y, alpha=3)
    (mul, total, cat, add) = log.calls
    assert mul[0] is aten.mul.Tensor and mul[1] == () and mul[2][0] is w and mul[2][1:] == (2.5,)
    assert type(mul[2][1]) is float and mul[3] == {}
    assert total[0] is aten.sum.dim_IntList and total[2][1] == [0, 1]
    assert total[3] == {"dtype": taeda.float64}
    assert cat[0] is aten.cat.default and type(cat[2][0]) is list and cat[2][0][0] is w
    assert add[3] == {"alpha": 3}
    assert y.grad_fn is not None


def test_results_may_be_replaced() -> None:
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 0 if func is aten.exp.default else result

    x = taeda.ones(2, requires_grad=True)
    with Zeros():
        y = x.exp()
    assert y.tolist() == [0, 0]
    (g,) = taeda.autograd.grad(y.sum(), x)
    assert g.tolist() == [0, 0]  # exp saves its result


def test_a_given_tensor_keeps_its_own_history() -> None:
    other = taeda.ones(2, requires_grad=True)

    class Swap(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return other

    x = taeda.full((2,), 3.0, requires_grad=True)
    with Swap():
        y = x.sin()
    assert other.is_leaf and y is not other and y.tolist() == [1, 1]
    y.sum().backward()
    assert other.grad is None and taeda.allclose(x.grad, taeda.full((2,), 3.0).cos())


def test_nothing_is_recorded_inside() -> None:
    w = taeda.ones(2, requires_grad=True)
    seen = []

    class Inner(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((w * 2).requires_grad)
            return func(*args, **(kwargs or {}))

    with Inner():
        taeda.ones(1).sin()
    assert seen == [False, False]
    assert taeda.is_grad_enabled() and (w * 2).requires_grad


def test_modes_nest() -> None:
    outer, inner = Log("outer "), Log("inner ")
    inner.names = outer.names
    with outer, inner:
        taeda.zeros(1).exp()
    assert outer.names == [
        "inner aten.zeros.default", "outer aten.zeros.default",
        "inner aten.exp.default", "outer aten.exp.default",
    ]  # fmt: skip
    taeda.ones(1).exp()
    assert len(outer.names) == 4


def test_a_handler_may_leave_and_enter_modes() -> None:
    log = Log()

    class Enters(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with log, taeda.no_grad():
                return func(*args, **(kwargs or {}))

    x = taeda.ones(2, requires_grad=True)
    with Enters():
        y = x.exp()
    assert log.names == ["aten.exp.default"] and y.requires_grad
    y.exp()
    assert len(log.names) == 1


def test_errors_leave_the_modes_as_they_were() -> None:
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    with Log() as log:
        with Fails():
            for _ in range(2):
                with pytest.raises(KeyError, match="mine"):
                    taeda.ones(1)
        taeda.ones(1)
    assert log.names == ["aten.ones.default"]
    with TorchDispatchMode(), pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        taeda.ones(1)


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("x.sin()", 1, "sin.*must give a Tensor, not int"),
        ("x.sin()", NotImplemented, "NotImplemented"),
        ("x.max(0)", 1, "must give several Tensors, not int"),
        ("x.max(0)", (1, 2), "must give a Tensor, not int"),
        ("x.max(0)", "x", "must give several Tensors"),
        ("x.max(0)", (), "must give 2 Tensors, not 0"),
    ],
)
def test_wrong_results_are_refused(call: str, given: Any, message: str) -> None:
    class Gives(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return given

    x = taeda.ones(2)
    with Gives(), pytest.raises(TypeError, match=message):
        eval(call, {"x": x})


def test_in_place_and_views() -> None:
    x = taeda.ones(2, 2, requires_grad=True)
    with Log() as log:
        y = x * 1
        y[0].mul_(3)
        y.t_()
    assert log.names[0] == "aten.mul.Tensor" and "aten.mul_.Tensor" in log.names
    y.sum().backward()
    assert x.grad.tolist() == [[3, 3], [1, 1]]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"), Log():
        x.add_(1)


def test_views_made_in_a_mode_may_be_changed() -> None:
    w = taeda.ones(2, requires_grad=True)
    base = taeda.zeros(2, 2)
    with Log() as log:
        base[0].copy_(w * 3)
        base.unbind(0)[1][:1].detach()
    assert "aten.select.int" in log.names
    base.sum().backward()
    assert w.grad.tolist() == [3, 3]
    with taeda.no_grad(), Log():
        view = w.view(2)
    with pytest.raises(RuntimeError, match="no_grad mode"):
        view.mul_(2)


def test_other_threads_are_not_seen() -> None:
    with Log() as log:
        thread = threading.Thread(target=lambda: taeda.ones(1).exp())
        thread.start()
        thread.join()
    assert log.names == []


def test_function_modes_come_first() -> None:
    names: list[str] = []

    class Functions(taeda.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(1)
    with Functions(), Log() as log:
        taeda.einsum("i,i->i", x, x)
    assert names == ["einsum"] and "aten.mul.Tensor" in log.names + ["aten.mul.Tensor"]
    with Log() as log, Functions():
        x.exp()
    assert names == ["einsum", "exp"] and log.names == ["aten.exp.default"]


def test_operations_of_libraries_are_seen_by_their_parts() -> None:
    @taeda.library.custom_op("seen::twice", mutates_args=())
    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    x = taeda.ones(1)
    with Log() as log:
        twice(x)
    assert log.names == ["aten.mul.Tensor"]


def test_new_tensors_may_require_gradients() -> None:
    with Log() as log:
        x = taeda.ones(2, requires_grad=True)
        assert x.requires_grad and x.is_leaf
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert log.calls[0][2:] == (([2],), {})


def test_transforms_and_sparse_tensors_are_seen_by_their_parts() -> None:
    x = taeda.ones(3, 2)
    with Log() as log:
        y = taeda.func.vmap(taeda.sin)(x)
    assert log.names == ["aten.sin.default"] and y.shape == (3, 2)
    with Log() as log:
        taeda.func.grad(lambda x: x.sin().sum())(x)
    assert "aten.sin.default" in log.names
    with Log() as log:
        x.to_sparse() * 2
    assert "aten.mul.Tensor" in log.names


def test_what_cannot_be_asked_is_no_mode() -> None:
    with pytest.raises(TypeError, match="expected a TorchDispatchMode, got int"):
        taeda._C._push_dispatch_mode(1)
    assert taeda._C._dispatch_modes() == []
