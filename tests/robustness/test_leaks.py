"""Training with everything that holds references: memory and objects stay level."""

import gc

import pytest

import taeda
from taeda import nn
from taeda.utils import data


class Twice(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


class Training:
    """One step after another, with hooks, a custom function, errors and second derivatives."""

    def __init__(self):
        self.model = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)
        )
        self.model[0].register_forward_hook(lambda module, inputs, output: output * 1)
        self.model[3].register_full_backward_hook(lambda module, inputs, outputs: None)
        self.recurrent = nn.LSTM(8, 4)
        self.optimizer = taeda.optim.Adam(self.model.parameters())
        points = data.TensorDataset(taeda.randn(64, 8), taeda.randint(0, 3, (64,)))
        self.loader = data.DataLoader(points, batch_size=16, shuffle=True)

    def step(self, x, y, number):
        self.optimizer.zero_grad()
        output = self.model(Twice.apply(x.requires_grad_() if number % 2 else x))
        output.register_hook(lambda grad: grad * 1)
        loss = nn.functional.cross_entropy(output, y) + self.recurrent(x)[0].sum() * 1e-3
        if number % 7 == 0:
            parameters = list(self.model.parameters())
            grads = taeda.autograd.grad(loss, parameters, create_graph=True)
            loss = loss + sum(g.square().sum() for g in grads)
        if number % 11 == 0:
            with pytest.raises(RuntimeError):
                output @ taeda.ones(5)
        loss.backward()
        self.optimizer.step()
        x[:, [1, 2]][0].tolist()

    def run(self, epochs):
        for number, (x, y) in enumerate(batch for _ in range(epochs) for batch in self.loader):
            self.step(x, y, number)


def held():
    gc.collect()
    return taeda._C.cpu_memory_stats()["allocated"], len(gc.get_objects())


def test_a_thousand_steps_keep_nothing():
    training = Training()
    training.run(20)
    memory, objects = held()
    training.run(250)
    more_memory, more_objects = held()
    assert more_memory <= memory
    assert more_objects <= objects + 20  # the interpreter's own


def test_what_is_kept_is_seen():
    """The measure above: a tensor a step shows."""
    training = Training()
    training.run(5)
    memory, objects = held()
    kept = []
    training.model[0].register_forward_hook(lambda module, inputs, output: kept.append([output]))
    training.run(5)
    more_memory, more_objects = held()
    assert more_memory >= memory + 20 * 16 * 16 * 4
    assert more_objects >= objects + 20


def test_a_backward_that_fails_within_a_module_keeps_nothing():
    """Between the hooks at a module's outputs and at its inputs, with a graph of the gradients."""
    linear, activation = nn.Linear(64, 64), nn.Tanh()
    activation.register_full_backward_hook(lambda module, inputs, outputs: None)
    activation.register_full_backward_pre_hook(lambda module, outputs: None)
    fails = activation.register_forward_hook(
        lambda module, inputs, output: output.grad_fn.register_hook(lambda a, b: 1 / 0) and None
    )
    memory = None
    for step in range(10):
        x = taeda.ones(2, 64, requires_grad=True)
        with pytest.raises(ZeroDivisionError):
            taeda.autograd.grad(activation(linear(x)).square().sum(), x, create_graph=True)
        if step == 2:
            memory, _ = held()
    assert held()[0] <= memory
    fails.remove()
