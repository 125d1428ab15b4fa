"""A tour of modules: parameters, children, containers, training, state, buffers and hooks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import taeda
import taeda.nn.functional as F
from taeda import nn


class MyLinear(nn.Module):
    """x @ weight + bias. A Parameter set as an attribute is registered with the module."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(taeda.randn(in_features, out_features))
        self.bias = nn.Parameter(taeda.randn(out_features))

    def forward(self, input: taeda.Tensor) -> taeda.Tensor:
        return (input @ self.weight) + self.bias


class Net(nn.Module):
    """Two of them, with a ReLU between: modules set as attributes are children."""

    def __init__(self) -> None:
        super().__init__()
        self.l0 = MyLinear(4, 3)
        self.l1 = MyLinear(3, 1)

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return self.l1(F.relu(self.l0(x)))


class BigNet(nn.Module):
    """Children may have children."""

    def __init__(self) -> None:
        super().__init__()
        self.l1 = MyLinear(5, 4)
        self.net = Net()

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return self.net(self.l1(x))


class DynamicNet(nn.Module):
    """As many layers as asked for, and an activation chosen by name at each call."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.linears = nn.ModuleList([MyLinear(4, 4) for _ in range(num_layers)])
        self.activations = nn.ModuleDict({"relu": nn.ReLU(), "lrelu": nn.LeakyReLU()})
        self.final = MyLinear(4, 1)

    def forward(self, x: taeda.Tensor, act: str) -> taeda.Tensor:
        for linear in self.linears:
            x = self.activations[act](linear(x))
        return self.final(x)


class RunningMean(nn.Module):
    """An exponential mean of its inputs: state that is saved, but not learned, is a buffer."""

    mean: taeda.Tensor
    calls: taeda.Tensor

    def __init__(self, num_features: int, momentum: float = 0.9) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", taeda.zeros(num_features))
        self.register_buffer("calls", taeda.tensor(0), persistent=False)

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        self.mean = self.momentum * self.mean + (1.0 - self.momentum) * x
        self.calls = self.calls + 1
        return self.mean


def heading(text: str) -> None:
    print(f"\n== {text}")


def a_module_of_ones_own() -> None:
    heading("a module has parameters, and calling it runs forward()")
    m = MyLinear(4, 3)
    print(m(taeda.randn(4)))
    for name, parameter in m.named_parameters():
        print(name, tuple(parameter.shape))
    assert [name for name, _ in m.named_parameters()] == ["weight", "bias"]


def modules_as_building_blocks() -> None:
    heading("modules are made of modules")
    chain = nn.Sequential(MyLinear(4, 3), nn.ReLU(), MyLinear(3, 1))
    assert chain(taeda.randn(4)).shape == (1,)

    for child in Net().named_children():
        print(child)
    big = BigNet()
    print(big)
    names = [name for name, _ in big.named_modules()]
    print(names)
    assert names == ["", "l1", "net", "net.l0", "net.l1"]

    dynamic = DynamicNet(3)
    assert dynamic(taeda.randn(4), "relu").shape == (1,)
    assert len(list(dynamic.parameters())) == 8
    dynamic.to(dtype=taeda.float64)
    print(dynamic(taeda.randn(4, dtype=taeda.float64), "lrelu"))
    assert all(p.dtype == taeda.float64 for p in dynamic.parameters())


def learn_to_be_zero(steps: int = 3000) -> float:
    heading("an optimizer changes the parameters it was given")
    net = Net()
    optimizer = taeda.optim.SGD(net.parameters(), lr=1e-3, weight_decay=1e-2, momentum=0.9)
    for _ in range(steps):
        loss = taeda.abs(net(taeda.randn(4)))
        net.zero_grad()
        loss.backward()
        optimizer.step()
    with taeda.no_grad():
        left = net(taeda.randn(500, 4)).abs().mean().item()
    print(f"mean |output| after {steps} steps: {left:.4f}")
    print(net.l1.weight)
    return left


def state_and_files(folder: Path) -> None:
    heading("a state dict is what is saved and loaded")
    net = Net()
    taeda.save(net.state_dict(), folder / "net.pt")
    new_net = Net()
    print(new_net.load_state_dict(taeda.load(folder / "net.pt")))
    x = taeda.randn(7, 4)
    assert taeda.equal(net(x), new_net(x))

    m = RunningMean(4)
    for _ in range(10):
        m(taeda.randn(4))
    print(m.state_dict())
    assert list(m.state_dict()) == ["mean"], "a buffer that is not persistent stays out of it"
    assert [name for name, _ in m.named_buffers()] == ["mean", "calls"]
    taeda.save(m.state_dict(), folder / "mean.pt")
    loaded = RunningMean(4)
    loaded.load_state_dict(taeda.load(folder / "mean.pt"))
    assert taeda.all(m.mean == loaded.mean)
    m.to(dtype=taeda.float64)
    assert m.mean.dtype == taeda.float64 and m.calls.dtype == taeda.int64


def hooks() -> None:
    heading("hooks see, and may change, what passes through a module")
    net = Net()
    seen: list[str] = []

    def before(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        seen.append("before")
        return (2 * args[0],)

    def after(module: nn.Module, args: tuple[Any, ...], output: taeda.Tensor) -> taeda.Tensor:
        seen.append("after")
        return -output

    def on_gradient(
        module: nn.Module, grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]
    ) -> None:
        seen.append("gradient")
        assert grad_output[0].shape == (5, 1)

    x = taeda.randn(5, 4, requires_grad=True)
    expected = -net(2 * x)
    handles = [
        net.register_forward_pre_hook(before),
        net.register_forward_hook(after),
        net.register_full_backward_hook(on_gradient),
    ]
    output = net(x)
    assert taeda.allclose(output, expected)
    output.sum().backward()
    print(seen)
    assert seen == ["before", "after", "gradient"]

    for handle in handles:
        handle.remove()
    net(x)
    assert seen == ["before", "after", "gradient"], "a removed hook is not called"


def main() -> float:
    taeda.manual_seed(0)
    a_module_of_ones_own()
    modules_as_building_blocks()
    left = learn_to_be_zero()
    with tempfile.TemporaryDirectory() as folder:
        state_and_files(Path(folder))
    hooks()
    return left


if __name__ == "__main__":
    main()
