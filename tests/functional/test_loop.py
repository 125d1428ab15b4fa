"""Loops of functional steps: what a step returns, and what it leaves alone."""

from __future__ import annotations

import pytest

import taeda
from taeda import functional, nn
from tests.functional.cases import F, mlp


def test_each_step_returns_what_it_computes_and_changes_nothing_else(batch):
    """Nothing is returned by way of what others hold, as by .grad and parameters."""
    x, y = batch
    module = mlp()
    factory = functional.factory(module)
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1, donate=False)
    parameters = factory.init(0)
    state = sgd.init(parameters)
    before = parameters.clone()
    model = factory(parameters)
    for _ in range(2):  # nothing accumulates: no zero_grad() belongs anywhere
        loss = F.cross_entropy(model(x), y)
        gradient = model.backward(loss)
    assert gradient == model.backward(F.cross_entropy(model(x), y))
    after, _ = sgd.step(parameters, gradient, state)
    assert parameters == before != after
    assert all(tensor.grad is None for tensor in parameters.values())
    assert all(p.grad is None for p in module.parameters())
    # The shape and the size of the update can be asked for, of nothing but the values.
    assert after.diff(parameters)["0.weight"].norm == pytest.approx(
        0.1 * gradient.norms()["0.weight"], rel=1e-4
    )
    loss = F.cross_entropy(mlp()(x), y)
    with pytest.raises(RuntimeError, match="compute it from what this same model returned"):
        model.backward(loss)  # a loss knows its model; another's is refused


def steps(count, x, y, forward=lambda model, x: model(x), make=mlp):
    """A loop of some steps; the last parameters and state."""
    factory, sgd = functional.factory(make), functional.optimizer(taeda.optim.SGD, lr=0.1)
    parameters = factory.init(0)
    state = sgd.init(parameters)
    for _ in range(count):
        model = factory(parameters)
        gradient = model.backward(F.cross_entropy(forward(model, x), y))
        parameters, state = sgd.step(parameters, gradient, state)
    return factory, sgd, parameters, state


class Writing(nn.Module):
    """From some call on, its forward writes into its own weight."""

    calls = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        Writing.calls += 1
        out = self.layer(x)
        if Writing.calls > 4:
            with taeda.no_grad():
                self.layer.bias.mul_(0.5)
        return out


def test_a_network_that_writes_into_its_weights_is_found_in_any_step(batch):
    Writing.calls = 0
    with pytest.raises(RuntimeError, match=r"SGD.step: 'layer.bias' was changed in place"):
        steps(8, *batch, make=Writing)
    assert Writing.calls == 5


def test_outputs_of_earlier_steps_are_constants(batch):
    """As state that is carried on is: each model has leaves of its own."""
    kept = []

    def forward(model, x):
        out = model(x)
        kept.append(out)
        return out + 0.1 * kept[-2] if len(kept) > 1 else out

    _, _, parameters, _ = steps(6, *batch, forward)
    kept.clear()

    def detached(model, x):
        out = model(x)
        kept.append(out.detach())
        return out + 0.1 * kept[-2] if len(kept) > 1 else out

    assert steps(6, *batch, detached)[2] == parameters


def test_tensors_that_are_read_in_a_loop_stay_what_they_were(batch):
    factory, sgd, parameters, state = steps(4, *batch)
    bias = parameters["0.bias"]
    before = bias.clone()
    model = factory(parameters)
    gradient = model.backward(F.cross_entropy(model(batch[0]), batch[1]))
    weight = gradient["0.bias"]
    parameters, state = sgd.step(parameters, gradient, state)
    assert taeda.equal(bias, before) and not taeda.equal(parameters["0.bias"], before)
    weight.zero_()
    with pytest.raises(RuntimeError, match="SGD.step: '0.bias' was changed in place"):
        sgd.step(parameters, gradient, state)
    bias = parameters["0.bias"]
    bias.requires_grad_()
    again = factory(parameters)
    loss = F.cross_entropy(again(batch[0]), batch[1])
    (reached,) = taeda.autograd.grad(loss, bias)  # it is used as it is
    assert reached.any()


def test_inference_mode(batch):
    factory = functional.factory(mlp)
    with taeda.inference_mode():
        parameters = factory.init(0)
        for _ in range(2):
            assert factory(parameters)(batch[0]).shape == (6, 3)
    assert factory(factory.init(0))(batch[0]).requires_grad


def test_a_step_that_fails_after_it_has_begun_leaves_the_state():
    """Whether the optimizer says that it changes its state, as those of C++ do, or not."""
    failing = False

    class InCall(taeda.optim.Adam):
        def _call(self, lists, group, numbers):
            if failing:
                raise ValueError("as wanted")
            super()._call(lists, group, numbers)

    class InStep(taeda.optim.Adam):
        def _step_group(self, group):
            super()._step_group(group)
            if failing:
                raise ValueError("as wanted")

    parameters = functional.Parameters({"a": taeda.ones(2), "b": taeda.ones(3)})
    both = parameters.clone()
    for kind in (InCall, InStep):
        adam = functional.optimizer(kind, lr=0.1)
        failing, state = False, adam.init(parameters)
        stepped, state = adam.step(parameters.clone(), both.select("a"), state)
        stepped, state = adam.step(stepped, both.select("a"), state)
        failing = True
        with pytest.raises(ValueError, match="as wanted"):
            adam.step(stepped, both, state)
        assert list(state.values) == ["a"]
        failing = False
        stepped, state = adam.step(stepped, both, state)
        assert list(state.values) == ["a", "b"] and state.values["a"]["step"] >= 3
