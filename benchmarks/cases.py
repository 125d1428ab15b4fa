"""What is measured. A case prepares its data and returns the function to time.

Each case is given the framework as a module (`taeda` or `torch`), so both run the same text.
"""

from __future__ import annotations

import atexit
import importlib
import os
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple


class Case(NamedTuple):
    """One row of the results."""

    group: str
    title: str
    prepare: Callable[[ModuleType], Callable[[], object]]


CASES: dict[str, Case] = {}


def case(group: str, title: str):
    """Adds a case under its function's name."""

    def register(prepare):
        CASES[prepare.__name__] = Case(group, title, prepare)
        return prepare

    return register


@case("overhead", "8x8 add")
def add(fw):
    a, b = fw.randn(8, 8), fw.randn(8, 8)
    return lambda: fw.add(a, b)


@case("overhead", "8x8 add, gradient recorded")
def add_recorded(fw):
    a, b = fw.randn(8, 8, requires_grad=True), fw.randn(8, 8)
    return lambda: fw.add(a, b)


@case("overhead", "8x8 a + b")
def add_operator(fw):
    a, b = fw.randn(8, 8), fw.randn(8, 8)
    return lambda: a + b


@case("overhead", "x[0] of an 8x8")
def index(fw):
    x = fw.randn(8, 8)
    return lambda: x[0]


@case("overhead", "8x8 matmul")
def matmul(fw):
    a, b = fw.randn(8, 8), fw.randn(8, 8)
    return lambda: a @ b


@case("overhead", "Linear(8, 8), batch of 8, no grad")
def linear(fw):
    model, x = fw.nn.Linear(8, 8), fw.randn(8, 8)

    def run():
        with fw.no_grad():
            return model(x)

    return run


@case("overhead", "Linear(8, 8), batch of 8, gradient recorded")
def linear_recorded(fw):
    model, x = fw.nn.Linear(8, 8), fw.randn(8, 8)
    return lambda: model(x)


@case("overhead", "calling an empty Module")
def module_call(fw):
    class Same(fw.nn.Module):
        def forward(self, x):
            return x

    model, x = Same(), fw.randn(8)
    return lambda: model(x)


@case("overhead", "(p * b).sum().backward(), 8x8")
def backward(fw):
    p, b = fw.randn(8, 8, requires_grad=True), fw.randn(8, 8)

    def run():
        p.grad = None
        (p * b).sum().backward()

    return run


@case("overhead", "Adam step, 8 parameters of 8x8")
def adam(fw):
    parameters = [fw.nn.Parameter(fw.randn(8, 8)) for _ in range(8)]
    for p in parameters:
        p.grad = fw.randn(8, 8)
    optimizer = fw.optim.Adam(parameters, lr=1e-3)
    return lambda: optimizer.step()


@case("overhead", "the sine model's training step, batch of 32")
def sine_step(fw):
    nn = fw.nn
    model = nn.Sequential(
        nn.Linear(1, 5),
        nn.ReLU(),
        nn.Linear(5, 5),
        nn.ReLU(),
        nn.Linear(5, 5),
        nn.ReLU(),
        nn.Linear(5, 1),
    )
    optimizer = fw.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()
    x = fw.rand(32, 1)
    y = fw.sin(x)

    def run():
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


@case("throughput", "exp of 1,000,000 floats")
def exp(fw):
    x = fw.randn(1_000_000)
    return lambda: fw.exp(x)


@case("throughput", "a + b, 1,000,000 floats")
def big_add(fw):
    a, b = fw.randn(1_000_000), fw.randn(1_000_000)
    return lambda: a + b


@case("throughput", "sum of 1,000,000 floats")
def big_sum(fw):
    x = fw.randn(1_000_000)
    return lambda: x.sum()


@case("throughput", "softmax over 1,024 x 1,000")
def softmax(fw):
    x = fw.randn(1024, 1000)
    return lambda: fw.softmax(x, dim=1)


@case("throughput", "512x512 matmul")
def big_matmul(fw):
    a, b = fw.randn(512, 512), fw.randn(512, 512)
    return lambda: a @ b


@case("throughput", "linalg.solve, 512x512, 64 right sides")
def linalg_solve(fw):
    a, b = fw.randn(512, 512) + 10 * fw.eye(512), fw.randn(512, 64)
    return lambda: fw.linalg.solve(a, b)


@case("throughput", "linalg.cholesky of 1,000 matrices 4x4")
def linalg_cholesky(fw):
    a = fw.randn(1000, 4, 4)
    a = a @ a.mT + fw.eye(4)
    return lambda: fw.linalg.cholesky(a)


@case("throughput", "linalg.svd of 64 matrices 32x32")
def linalg_svd(fw):
    a = fw.randn(64, 32, 32)
    return lambda: fw.linalg.svd(a)


@case("throughput", "linalg.eigh, 256x256")
def linalg_eigh(fw):
    a = fw.randn(256, 256)
    a = a + a.mT
    return lambda: fw.linalg.eigh(a)


@case("training", "digits network: one step, batch of 32")
def digits_step(fw):
    nn = fw.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = fw.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    images, labels = fw.rand(32, 1, 8, 8), fw.randint(0, 10, (32,))

    def run():
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


@case("training", "perceptron 784-256-10: one step, batch of 64")
def perceptron_step(fw):
    nn = fw.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    x, labels = fw.rand(64, 784), fw.randint(0, 10, (64,))

    def run():
        loss = criterion(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


@case("files", "loading a checkpoint of 64 MB, 16 tensors")
def load_checkpoint(fw):
    path = _checkpoint(fw)
    return lambda: fw.load(path)


@case("files", "mapping a checkpoint of 64 MB, 16 tensors")
def map_checkpoint(fw):
    path = _checkpoint(fw)
    return lambda: fw.load(path, mmap=True)


def _checkpoint(fw) -> str:
    """A file in a folder that goes when the process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, "model.pt")
    fw.save({f"layers.{i}.weight": fw.randn(1024, 1024) for i in range(16)}, path)
    return path


@case("data", "DataLoader over 1,000 rows of 16, shuffled, batches of 32")
def loader_pass(fw):
    importlib.import_module(f"{fw.__name__}.utils.data")
    data = fw.utils.data.TensorDataset(fw.randn(1000, 16), fw.randint(0, 10, (1000,)))
    loader = fw.utils.data.DataLoader(data, batch_size=32, shuffle=True)

    def run():
        for _inputs, _labels in loader:
            pass

    return run
