"""Networks with state of all kinds, and how long a factory's network holds tensors."""

from __future__ import annotations

import pytest

import taeda
from taeda import functional, nn
from taeda.utils.checkpoint import checkpoint
from tests.functional.cases import F, mlp


def spectral():
    return nn.utils.parametrizations.spectral_norm(nn.Linear(4, 5))


class Averaging(nn.Module):
    """Replaces one buffer, changes another in place."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("mean", taeda.zeros(3))
        self.register_buffer("calls", taeda.zeros(()), persistent=False)

    def forward(self, x):
        y = self.linear(x)
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        self.calls += 1
        return y - self.mean


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)

    def forward(self, x):
        return self.encoder(x[None])[0]


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 5, bidirectional=True)
        self.cell = nn.LSTMCell(10, 3)

    def forward(self, x):
        return self.cell(self.gru(x.reshape(-1, 2, 2).transpose(0, 1))[0][-1])[0]


@pytest.mark.filterwarnings("ignore:.*weight_norm")
@pytest.mark.filterwarnings("ignore:.*nested")
@pytest.mark.parametrize(
    "make",
    [
        spectral,
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)),
        lambda: nn.utils.weight_norm(nn.Linear(4, 5)),
        lambda: nn.Sequential(
            nn.Linear(4, 6), nn.GroupNorm(2, 6), nn.BatchNorm1d(6, momentum=None)
        ),
        Averaging,
        Attention,
        Cells,
    ],
)
def test_networks_with_state_of_all_kinds(batch, make):
    x, y = batch
    y = y.clamp(max=2)
    taeda.manual_seed(2)
    module = make()
    ordinary = taeda.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(10):
        ordinary.zero_grad()
        F.cross_entropy(module(x), y).backward()
        ordinary.step()
    factory = functional.factory(make)
    adam = functional.optimizer(taeda.optim.Adam, lr=0.01)
    buffers = factory.buffers(2)
    taeda.manual_seed(2)
    parameters = factory.init()
    state = adam.init(parameters)
    for _ in range(10):
        model = factory(parameters, buffers)
        gradient = model.backward(F.cross_entropy(model(x), y))
        buffers = model.buffers
        parameters, state = adam.step(parameters, gradient, state)
    want = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    got = {**parameters, **buffers}
    assert want.keys() == got.keys()
    assert all(taeda.equal(want[name], got[name]) for name in want)


# ---- the network holds tensors for as long as a model lives, and no longer ----------------------


def held(factory):
    return [t for t in factory._slots.module.state_dict().values() if not t.is_meta]


def test_a_network_is_empty_without_models(batch):
    factory = functional.factory(mlp)
    parameters = factory.init(0)
    factory.apply(parameters, None, batch[0])
    assert not held(factory)
    model = factory(parameters)
    model(batch[0])
    assert held(factory)
    model = factory(parameters)  # in place of the first one
    loss = model(batch[0]).sum()
    second = factory(parameters)
    gradient = model.backward(loss)
    del model
    assert second(batch[0]).sum() == loss
    del second
    assert not held(factory)
    unused = factory(parameters)
    model = factory(parameters)
    model(batch[0])
    del model
    assert held(factory)  # for the one that has not run yet
    del unused
    assert not held(factory) and gradient.norm() > 0
    with pytest.raises(ValueError, match="missing"):
        factory({})
    assert not factory._waiting


def test_models_take_turns(batch):
    """Each computes with its own tensors, whoever ran before it."""
    x, y = batch
    factory = functional.factory(mlp)
    sets = [factory.init(seed) for seed in range(3)]
    models = [factory(parameters) for parameters in sets]
    losses = [F.cross_entropy(model(x), y) for model in models]
    gradients = [model.backward(loss) for model, loss in zip(models, losses, strict=True)]
    for parameters, gradient in zip(sets, gradients, strict=True):
        alone = factory(parameters)
        assert alone.backward(F.cross_entropy(alone(x), y)) == gradient


class Replacing(nn.Module):
    """Its forward puts another parameter in place of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(taeda.ones(2))

    def forward(self, x):
        out = (self.weight * x).sum()
        self.weight = nn.Parameter(taeda.zeros(2))
        return out


def test_what_a_forward_replaces_is_there_again_in_the_next(batch):
    factory = functional.factory(Replacing)
    model = factory(factory.init(0))
    for _ in range(2):
        loss = model(taeda.ones(2))
        assert loss == 2
        assert model.backward(loss)["weight"].tolist() == [1.0, 1.0]


def test_recomputed_forwards_find_their_own_tensors(batch):
    """Checkpointing runs the network again in backward, when another model has run since."""

    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp()

        def forward(self, x):
            return checkpoint(self.body, x, use_reentrant=False)

    x, y = batch
    factory, plain = functional.factory(Saving), functional.factory(mlp)
    model, other = factory(factory.init(0)), factory(factory.init(1))
    loss = F.cross_entropy(model(x), y)
    other(x)
    gradient = model.backward(loss)
    same = plain(plain.init(0))
    expected = same.backward(F.cross_entropy(same(x), y))
    for name in expected:
        assert taeda.equal(gradient[f"body.{name}"], expected[name])


class Recursive(nn.Module):
    """Its forward calls another model of its own factory, with other tensors."""

    inner = None

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(taeda.rand(2))

    def forward(self, x, deep=True):
        before = (self.weight * x).sum()
        if deep:
            Recursive.inner(x, deep=False)
        return before + (self.weight * x).sum()


def test_a_model_within_a_model():
    factory = functional.factory(Recursive)
    x = taeda.ones(2)
    parameters = factory.init(0)
    Recursive.inner = factory(factory.init(1))
    model = factory(parameters)
    try:
        loss = model(x)
        assert taeda.allclose(loss, 2 * parameters["weight"].sum())
        assert model.backward(loss)["weight"].tolist() == [2.0, 2.0]
    finally:
        Recursive.inner = None
