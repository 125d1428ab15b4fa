"""__torch_dispatch__ of Tensor subclasses: programs of PyTorch's users, on both libraries."""

from __future__ import annotations

from typing import Any

import pytest

import taeda
from tests import dispatch_classes


def forward_and_backward(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.linspace(-1, 1, 12).view(3, 4), requires_grad=True)
    w = c.Logging(lib.linspace(0, 1, 8).view(4, 2), requires_grad=True)
    loss = (x @ w).sigmoid().sum()
    loss.backward()
    assert type(loss) is c.Logging and type(x.grad) is c.Logging
    (w * 2).sum().backward()  # adds to the gradient
    return loss.item(), x.grad.elem.tolist(), w.grad.elem.tolist()


def in_place_and_views(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.ones(3, 2), requires_grad=True)
    y = x * 2
    same = y
    y += 1
    assert y is same
    y[0].mul_(3)
    y.t()[1].exp_()
    y.sum().backward()
    return y.elem.tolist(), x.grad.elem.tolist()


def plain_and_wrapped(lib: Any, c: Any) -> Any:
    x = lib.ones(2, 2, requires_grad=True)
    w = c.Logging(lib.full((2, 2), 3.0), requires_grad=True)
    y = x @ w + x
    y.sum().backward()
    assert type(w.grad) is c.Logging
    grad = getattr(x.grad, "elem", x.grad)
    return y.elem.tolist(), grad.tolist(), w.grad.elem.tolist()


def second_derivatives(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.tensor([0.5, 1.5]), requires_grad=True)
    (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x)
    return g.elem.tolist(), h.elem.tolist()


def a_module_of_wrapped_parameters(lib: Any, c: Any) -> Any:
    lib.manual_seed(0)
    net = lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.ReLU(), lib.nn.Linear(3, 1))
    for layer in (net[0], net[2]):
        layer.weight = lib.nn.Parameter(c.Two(layer.weight.data, layer.weight.data * 2))
    assert isinstance(net[0].weight, lib.nn.Parameter) and type(net[0].weight) is c.Two
    assert len(list(net.parameters())) == 4
    out = net(lib.linspace(-1, 1, 8).view(2, 4))
    out.sum().backward()
    with lib.no_grad():
        for p in (net[0].weight, net[2].weight):
            p.sub_(p.grad, alpha=0.1)
    w = net[0].weight
    return out.a.tolist(), out.b.tolist(), w.a.tolist(), w.b.tolist()


def quantized(lib: Any, c: Any) -> Any:
    w = c.Scaled.of(lib.linspace(-2, 2, 12).view(4, 3))
    x = lib.linspace(0, 1, 6).view(2, 3).requires_grad_()
    y = lib.nn.functional.linear(x, w)
    y.sum().backward()
    assert type(y) is lib.Tensor and type(w.t()) is c.Scaled and w.t().shape == (3, 4)
    return w.values.tolist(), y.tolist(), x.grad.tolist(), w.t().scale.item()


def masked(lib: Any, c: Any) -> Any:
    x = c.Masked(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([True, False, True]))
    y = x + 1
    z = y * x
    return z.data_part.tolist(), z.mask.tolist(), (x + x).mask.tolist(), z.sum().item()


def flops(lib: Any, c: Any) -> Any:
    c.Counting.flops = 0
    x, w = c.Counting(lib.ones(3, 4)), c.Counting(lib.ones(4, 5), requires_grad=True)
    (x @ w).relu().sum().backward()
    return c.Counting.flops


def numbers(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.tensor(3.0))
    values = [x.item(), float(x), int(x), bool(x > 2), bool((x == x).all())]
    return values, lib.equal(x, x), lib.allclose(x, x)


def lists(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.arange(6.0).view(3, 2), requires_grad=True)
    a, b, d = x.unbind()
    y = lib.cat([lib.stack([a, d]), b[None]])
    parts = y.split(2)
    (parts[0] * 2).sum().backward()
    values, places = x.max(1)
    return x.grad.elem.tolist(), values.elem.tolist(), places.elem.tolist(), len(x)


def attributes(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.ones(4, 3).t())
    return (
        tuple(x.shape), x.stride(), x.dtype is lib.float32, x.device.type, x.is_contiguous(),
        x.numel(), x.data_ptr(), x.is_meta, x.requires_grad, x.is_leaf, x.dim(), x.is_cpu,
    )  # fmt: skip


def under_no_grad(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.ones(2), requires_grad=True)
    with lib.no_grad():
        y = x * 2
        x.add_(1)
    return y.requires_grad, y.elem.tolist(), x.elem.tolist(), x.detach().requires_grad


def out_of_a_function(lib: Any, c: Any) -> Any:
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x = c.Logging(lib.tensor([1.0, 2.0]), requires_grad=True)
    y = Double.apply(x)
    y.sum().backward()
    return y.elem.tolist(), x.grad.elem.tolist()


def hooks(lib: Any, c: Any) -> Any:
    x = c.Logging(lib.ones(2), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(type(g).__name__))
    y = x * 3
    y.retain_grad()
    (y * 2).sum().backward()
    return seen, y.grad.elem.tolist()


PROGRAMS = [
    forward_and_backward, in_place_and_views, plain_and_wrapped, second_derivatives,
    a_module_of_wrapped_parameters, quantized, masked, flops, numbers, lists, attributes,
    under_no_grad, out_of_a_function, hooks,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_give_what_pytorch_gives(program: Any) -> None:
    torch = pytest.importorskip("torch")
    ours = program(taeda, dispatch_classes)
    theirs = program(torch, dispatch_classes.classes_of(torch))
    assert ours == close(theirs)


class close:
    """Equal up to rounding, through tuples and lists."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if isinstance(self.value, (list, tuple)):
            return len(self.value) == len(other) and all(  # type: ignore[arg-type]
                close(a) == b
                for a, b in zip(self.value, other, strict=True)  # type: ignore[call-overload]
            )
        if isinstance(self.value, float):
            return bool(other == pytest.approx(self.value, rel=1e-5, abs=1e-6))
        return bool(self.value == other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.value)


SAME_LOG = [
    "x + x", "x * 2", "x @ x.t()", "x.sum(0)", "x.add_(1)", "x.view(4)", "x[0]", "x.exp().sum()",
    "lib.cat([x, x])", "x.max(0)", "x.to(lib.float64)", "x.detach()", "lib.nn.functional.relu(x)",
    "x.clone()", "lib.zeros_like(x)", "x.item() if x.numel() == 1 else x.mean()",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME_LOG)
def test_calls_are_those_of_pytorch(text: str) -> None:
    torch = pytest.importorskip("torch")
    logs = []
    for lib, c in ((taeda, dispatch_classes), (torch, dispatch_classes.classes_of(torch))):
        c.Logging.log.clear()
        x = c.Logging(lib.ones(2, 2))
        eval(text, {"lib": lib, "x": x})
        logs.append([str(func) for func, *_ in c.Logging.log])
    assert logs[0] == logs[1]
