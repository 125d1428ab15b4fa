"""Functional models in taeda.func's transforms, checkpoints, explain and strict."""

from __future__ import annotations

import pytest

import taeda
from taeda import func, functional, nn
from taeda.functional import Parameters
from taeda.utils.checkpoint import checkpoint
from tests.functional.cases import F, Tied, mlp


def loss_of(factory):
    return lambda p, x, y: F.cross_entropy(factory.apply(p, None, x)[0], y)


def close(a, b):
    for name in a:
        taeda.testing.assert_close(a[name], b[name])


def test_grad(batch):
    factory = functional.factory(mlp)
    parameters = factory.init(0)
    model = factory(parameters)
    want = model.backward(F.cross_entropy(model(batch[0]), batch[1]))
    gradient = func.grad(loss_of(factory))(parameters, *batch)
    assert isinstance(gradient, Parameters) and gradient == want
    again, value = func.grad_and_value(lambda p: F.cross_entropy(factory(p)(batch[0]), batch[1]))(
        parameters
    )
    assert again == want and value.dim() == 0


def test_gradients_of_each_sample(batch):
    factory = functional.factory(mlp)
    parameters = factory.init(0)
    x, y = batch
    per_sample = func.vmap(func.grad(loss_of(factory)), in_dims=(None, 0, 0))(parameters, x, y)
    assert per_sample["0.weight"].shape == (6, 5, 4)
    one = func.grad(loss_of(factory))(parameters, x[2], y[2])
    close(per_sample.map(lambda t: t[2]), one)


def test_ensembles(batch):
    factory = functional.factory(mlp)
    members = [factory.init(seed) for seed in range(3)]
    stacked = members[0].map(lambda *tensors: taeda.stack(tensors), *members[1:])
    out = func.vmap(lambda p: factory.apply(p, None, batch[0])[0])(stacked)
    taeda.testing.assert_close(out[1], factory(members[1])(batch[0]))
    gradient = func.vmap(lambda p: func.grad(loss_of(factory))(p, *batch))(stacked)
    adam = functional.optimizer(taeda.optim.Adam, lr=0.1)
    stacked, _ = adam.step(stacked, gradient, adam.init(stacked))
    model = factory(members[1])
    own = model.backward(F.cross_entropy(model(batch[0]), batch[1]))
    alone, _ = adam.step(members[1], own, adam.init(members[1]))
    close(stacked.map(lambda t: t[1]), alone)
    with pytest.raises(RuntimeError, match="step the stacked parameters outside"):
        func.vmap(lambda p: adam.step(p, p, adam.init(p))[0])(stacked)


def test_ensembles_with_batch_norm(batch):
    factory = functional.factory(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    pairs = [(factory.init(seed), factory.buffers()) for seed in range(2)]
    stack = [a.map(lambda s, t: taeda.stack([s, t]), b) for a, b in zip(*pairs, strict=True)]
    out, after = func.vmap(lambda p, b: factory.apply(p, b, batch[0]))(*stack)
    want, buffers = factory.apply(*pairs[1], batch[0])
    taeda.testing.assert_close(out[1], want)
    close(after.map(lambda t: t[1]), buffers)


def test_jvp_and_hessian(batch):
    factory = functional.factory(lambda: nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 3)))
    parameters, direction = factory.init(0), factory.init(1)

    def loss(p):
        return loss_of(factory)(p, *batch)

    value, slope = func.jvp(loss, (parameters,), (direction,))
    gradient = func.grad(loss)(parameters)
    taeda.testing.assert_close(slope, gradient.dot(direction))
    taeda.testing.assert_close(value, loss(parameters))
    _, product = func.jvp(func.grad(loss), (parameters,), (direction,))
    matrix = func.hessian(lambda v: loss(parameters.with_vector(v)))(parameters.vector())
    taeda.testing.assert_close(product.vector(), matrix @ direction.vector(), rtol=1e-4, atol=1e-5)
    tree = func.hessian(loss)(parameters)
    assert tree["0.weight"]["2.bias"].shape == (2, 4, 3)


def test_second_derivatives_by_backward(batch):
    factory = functional.factory(mlp)
    model = factory(factory.init(0))
    gradient = model.backward(F.cross_entropy(model(batch[0]), batch[1]), create_graph=True)
    second = model.backward(gradient.norm())
    want = func.grad(lambda p: func.grad(loss_of(factory))(p, *batch).norm())(model.parameters)
    close(second, want)


def test_differentiating_through_a_step(batch):
    factory = functional.factory(mlp)
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1, differentiable=True)
    loss = loss_of(factory)

    def after_a_step(p, step):
        return loss(step(p, func.grad(loss)(p, *batch)), *batch)

    parameters = factory.init(0)
    got = func.grad(lambda p: after_a_step(p, lambda p, g: sgd.step(p, g, sgd.init(p))[0]))(
        parameters
    )
    want = func.grad(lambda p: after_a_step(p, lambda p, g: p - 0.1 * g))(parameters)
    close(got, want)


@pytest.mark.parametrize("inside", [False, True])
def test_checkpoints(batch, inside):
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = mlp(), nn.Linear(3, 3)

        def forward(self, x):
            x = checkpoint(self.first, x, use_reentrant=False) if inside else self.first(x)
            return self.second(x)

    factory = functional.factory(Halves)
    model = factory(factory.init(0))
    out = model(batch[0]) if inside else checkpoint(model, batch[0], use_reentrant=False)
    gradient = model.backward(F.cross_entropy(out, batch[1]))
    module = model.module()
    F.cross_entropy(module(batch[0]), batch[1]).backward()
    assert all(taeda.equal(gradient[n], p.grad) for n, p in module.named_parameters())


def test_explain(batch):
    factory = functional.factory(Tied)
    model = factory(factory.init(0))
    tokens = taeda.tensor([1, 2])
    loss = F.cross_entropy(model(tokens), tokens)
    shown = model.module(shared=True)
    assert shown.head.weight is shown.embedding.weight
    explanation = taeda.explain(loss, model=shown)
    assert [row.name for row in explanation.rows] == list(factory.names)
    assert all(row.reached for row in explanation.rows) and not explanation.mistakes
    other = factory(factory.init(1)).module(shared=True)
    assert not any(row.reached for row in taeda.explain(loss, model=other).rows)
    normed = functional.factory(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    model = normed(normed.init(0), normed.buffers())
    assert taeda.equal(model.module(shared=True)(batch[0]), model(batch[0]))
    assert model.buffers["1.num_batches_tracked"] == 1


@pytest.mark.parametrize("accumulate", [1, 2])
def test_strict(batch, accumulate):
    """The functional loop makes none of the mistakes that strict looks for, nor does Trainer."""
    factory = functional.factory(mlp)
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1)
    with taeda.strict(accumulate=accumulate):
        parameters = factory.init(0)
        state = sgd.init(parameters)
        for _ in range(3):
            model = factory(parameters)
            gradient = model.backward(F.cross_entropy(model(batch[0]), batch[1]))
            parameters, state = sgd.step(parameters, gradient, state)
        module = mlp()
        optimizer = taeda.optim.SGD(module.named_parameters(), lr=0.1)
        callbacks = [taeda.training.Accumulate(accumulate)]
        trainer = taeda.Trainer(module, F.cross_entropy, optimizer, callbacks=callbacks)
        trainer.fit(*batch, batch_size=2, epochs=4, validation=batch)
