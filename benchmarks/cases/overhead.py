"""Small work: what a call costs beside the arithmetic."""

from __future__ import annotations

import importlib

from benchmarks.cases.table import case


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


@case("overhead", "8x8 a + b, gradient recorded")
def add_operator_recorded(fw):
    a, b = fw.randn(8, 8, requires_grad=True), fw.randn(8, 8)
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


@case("overhead", "x.sum() of an 8x8")
def small_sum(fw):
    x = fw.randn(8, 8)
    return lambda: x.sum()


@case("overhead", "x.view(64) of an 8x8")
def view(fw):
    x = fw.randn(8, 8)
    return lambda: x.view(64)


@case("overhead", "x.transpose(0, 1) of an 8x8")
def transpose(fw):
    x = fw.randn(8, 8)
    return lambda: x.transpose(0, 1)


@case("overhead", "cat of two 8x8")
def small_cat(fw):
    a, b = fw.randn(8, 8), fw.randn(8, 8)
    return lambda: fw.cat([a, b])


@case("overhead", "softmax of an 8x8")
def small_softmax(fw):
    x = fw.randn(8, 8)
    return lambda: fw.softmax(x, dim=1)


@case("overhead", "x * 2 + 1 of an 8x8")
def numbers(fw):
    x = fw.randn(8, 8)
    return lambda: x * 2 + 1


@case("overhead", "relu of an 8x8")
def small_relu(fw):
    x = fw.randn(8, 8)
    return lambda: fw.relu(x)


@case("overhead", "50 steps of GRUCell(16, 16), with backward")
def gru_cell(fw):
    cell, x = fw.nn.GRUCell(16, 16), fw.randn(50, 4, 16)

    def run():
        h = fw.zeros(4, 16)
        for t in range(50):
            h = cell(x[t], h)
        cell.zero_grad()
        h.sum().backward()

    return run


@case("overhead", "DataLoader over 1,000 rows of 16, shuffled, batches of 32")
def loader_pass(fw):
    importlib.import_module(f"{fw.__name__}.utils.data")
    data = fw.utils.data.TensorDataset(fw.randn(1000, 16), fw.randint(0, 10, (1000,)))
    loader = fw.utils.data.DataLoader(data, batch_size=32, shuffle=True)

    def run():
        for _inputs, _labels in loader:
            pass

    return run


@case("overhead", "SGD step with momentum, 8 parameters of 8x8")
def sgd(fw):
    parameters = [fw.nn.Parameter(fw.randn(8, 8)) for _ in range(8)]
    for p in parameters:
        p.grad = fw.randn(8, 8)
    optimizer = fw.optim.SGD(parameters, lr=1e-3, momentum=0.9)
    return lambda: optimizer.step()
