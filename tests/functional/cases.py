"""Small networks with each kind of state, and optimizers, to train in several ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda import nn

F = nn.functional


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


class Tied(nn.Module):
    """Its output layer has the embedding's weights."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(F.relu(self.body(self.embedding(x))))


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def perceptron():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3, bias=False))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3)
    )


class Case(NamedTuple):
    make: Callable[[], nn.Module]
    batch: Callable[[], tuple[Any, Any]]


def _batch(*shape):
    return lambda: (taeda.randn(*shape), taeda.randint(0, 3, (shape[0],)))


CASES = {
    "dropout": Case(perceptron, _batch(8, 6)),
    "batch norm": Case(convolutional, _batch(4, 2, 5, 5)),
    "lstm": Case(Recurrent, _batch(4, 3, 5)),
    "tied": Case(Tied, lambda: (taeda.randint(0, 7, (9,)), taeda.randint(0, 7, (9,)))),
}

# Muon takes matrices alone and SparseAdam sparse gradients: they have networks of their own.
OPTIMIZERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3, "nesterov": True},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "Adagrad": {"lr": 0.05},
    "Adadelta": {"lr": 1.0},
    "RMSprop": {"lr": 0.003, "momentum": 0.5, "centered": True},
    "Rprop": {"lr": 0.003},
    "ASGD": {"lr": 0.05},
    "Adafactor": {"lr": 0.05},
}


def matrices():
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3, bias=False))


def sparse():
    return nn.Sequential(nn.EmbeddingBag(9, 3, sparse=True, mode="sum"))


SPECIAL = {
    "Muon": (Case(matrices, _batch(8, 6)), {"lr": 0.02}),
    "SparseAdam": (
        Case(sparse, lambda: (taeda.randint(0, 9, (5, 2)), taeda.randint(0, 3, (5,)))),
        {"lr": 0.02},
    ),
    "LBFGS": (Case(matrices, _batch(8, 6)), {"lr": 0.5, "max_iter": 4}),
}


def batches(case: Case, count: int = 10) -> list[tuple[Any, Any]]:
    taeda.manual_seed(1)
    return [case.batch() for _ in range(count)]


def train(case: Case, name: str, options: dict[str, Any], steps: int = 100, schedule=None):
    """The loop that everybody writes. The module after it."""
    data = batches(case)
    taeda.manual_seed(2)
    model = case.make()
    optimizer = getattr(taeda.optim, name)(model.parameters(), **options)
    scheduler = None if schedule is None else schedule(optimizer)
    for i in range(steps):
        x, y = data[i % len(data)]

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return model


def assert_same(module: nn.Module, tensors: dict[str, Any]) -> None:
    state = module.state_dict()
    for name, tensor in tensors.items():
        assert taeda.equal(state[name], tensor), name
