"""Networks as functions of their parameters: names, buffers, seeds, errors, threads."""

from __future__ import annotations

import threading

import pytest

import taeda
from taeda import functional, nn
from taeda.functional import Parameters
from tests.functional.cases import CASES, F, Tied, mlp


def test_the_given_network_is_left_alone(batch):
    module = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    before = {name: t.clone() for name, t in module.state_dict().items()}
    stream = taeda.get_rng_state()
    factory = functional.factory(module)
    parameters = factory.init(7)
    assert taeda.equal(stream, taeda.get_rng_state())
    model = factory(parameters, factory.buffers())
    model.backward(F.cross_entropy(model(batch[0]), batch[1]))
    assert all(taeda.equal(before[name], t) for name, t in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert all(t.is_meta for t in factory._slots.module.state_dict().values())


def test_initialisation_by_a_seed():
    for case in CASES.values():
        factory = functional.factory(case.make)
        taeda.manual_seed(5)
        assert factory.init(5) == Parameters.of(case.make())
        assert factory.init(5) == factory.init(5) != factory.init(6)
        taeda.manual_seed(5)
        assert factory.init() == factory.init(5) and factory.init() != factory.init(5)


def test_networks_that_cannot_be_initialised_anew():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(taeda.ones(2))

    with pytest.raises(ValueError, match=r"initialises 'scale'.*factory\(Net, 10\)"):
        functional.factory(Scaled()).init(0)
    assert functional.factory(Scaled).init(0)["scale"].tolist() == [1, 1]
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="original"):
        functional.factory(normed).init(0)
    with pytest.raises(ValueError, match="shape of 'weight' is not known"):
        functional.factory(nn.LazyLinear(3))
    for wrong in (lambda: functional.factory(3), lambda: functional.factory(lambda: 3)):
        with pytest.raises(TypeError, match="Module"):
            wrong()
    with pytest.raises(TypeError, match="already made"):
        functional.factory(nn.Linear(1, 1), 3)


def test_names_are_checked():
    factory = functional.factory(mlp)
    parameters = factory.init(0)
    with pytest.raises(ValueError, match=r"missing are \['2\.bias'\]"):
        factory({n: t for n, t in parameters.items() if n != "2.bias"})
    with pytest.raises(ValueError, match="unknown"):
        factory(parameters | Parameters({"3.bias": taeda.ones(1)}))
    with pytest.raises(TypeError, match="mapping"):
        factory(3)
    adam = functional.optimizer(taeda.optim.Adam)
    state = adam.init(parameters)
    with pytest.raises(ValueError, match="no parameters are named"):
        adam.step(parameters, Parameters({"x": taeda.ones(1)}), state)
    with pytest.raises(RuntimeError, match=r"'0\.bias'.*gradient"):
        adam.step(parameters, Parameters({"0.bias": taeda.ones(1)}), state)
    assert factory(parameters)(taeda.ones(4)).shape == (3,)  # nothing was donated
    with pytest.raises(TypeError, match=r"class such as taeda\.optim\.Adam"):
        functional.optimizer(taeda.optim.Adam([taeda.ones(1)]))
    with pytest.raises(TypeError, match="lr_scheduler"):
        functional.scheduler(3)


def test_gradients_lack_what_the_loss_does_not_reach(batch):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)
            self.a.bias.requires_grad_(False)

        def forward(self, x):
            return self.a(x)

    factory = functional.factory(Half)
    parameters = factory.init(0)
    assert factory.frozen == {"a.bias"}
    model = factory(parameters)
    loss = F.cross_entropy(model(batch[0]), batch[1])
    gradient = model.backward(loss, retain_graph=True)
    assert list(gradient) == ["a.weight"]
    assert list(model.backward(loss, zeros=True)) == ["a.weight", "b.weight", "b.bias"]
    sgd = functional.optimizer(taeda.optim.SGD, lr=1.0, weight_decay=1.0, donate=False)
    after, _ = sgd.step(parameters, gradient, sgd.init(parameters))
    assert after.diff(parameters).changed == ("a.weight",)
    other = factory(parameters)
    with pytest.raises(RuntimeError, match="none of this model's parameters"):
        other.backward(F.cross_entropy(model(batch[0]), batch[1]))
    with pytest.raises(RuntimeError, match="none of this model's parameters"):
        other.backward(taeda.ones(()))


def test_buffers_are_explicit(batch):
    factory = functional.factory(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    parameters, buffers = factory.init(0), factory.buffers(0)
    with pytest.raises(ValueError, match=r"has the buffers \['1\.running_mean'"):
        factory(parameters)
    model = factory(parameters, buffers)
    model(batch[0])
    assert buffers["1.num_batches_tracked"] == 0 and model.buffers["1.num_batches_tracked"] == 1
    model(batch[0])
    assert model.buffers["1.num_batches_tracked"] == 2
    out, after = factory.apply(parameters, buffers, batch[0])
    assert after.diff(buffers).changed == tuple(buffers)
    evaluated = factory(parameters, after, training=False)
    want = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    (parameters | after).copy_to(want)
    assert taeda.equal(evaluated(batch[0]), want.eval()(batch[0]))
    assert evaluated.buffers is after
    assert taeda.equal(model.eval()(batch[0]), factory(parameters, model.buffers).eval()(batch[0]))
    assert taeda.equal(evaluated.module()(batch[0]), want(batch[0]))
    assert not want.training and not evaluated.module().training


def test_a_seed_makes_dropout_a_function(batch):
    factory = functional.factory(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)))
    parameters = factory.init(0)
    stream = taeda.get_rng_state()
    first, second = (factory(parameters, seed=1)(batch[0]) for _ in range(2))
    assert taeda.equal(first, second)
    assert taeda.equal(stream, taeda.get_rng_state())
    assert not taeda.equal(first, factory(parameters)(batch[0]))


def test_a_model_does_not_outlive_its_parameters(batch):
    factory = functional.factory(mlp)
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1)
    parameters = factory.init(0)
    model = factory(parameters)
    gradient = model.backward(F.cross_entropy(model(batch[0]), batch[1]))
    sgd.step(parameters, gradient, sgd.init(parameters))
    with pytest.raises(RuntimeError, match="donated"):
        model(batch[0])


def test_errors_leave_the_factory_usable(batch):
    factory = functional.factory(mlp)
    model = factory(factory.init(0))
    with pytest.raises(RuntimeError):
        model(taeda.ones(2, 9))
    assert model(batch[0]).shape == (6, 3)
    del model
    assert all(t.is_meta for t in factory._slots.module.parameters())


def test_threads(batch):
    factory = functional.factory(mlp)
    sets = [factory.init(seed) for seed in range(4)]
    want = [factory(p)(batch[0]) for p in sets]
    wrong = []

    def work(p, expected):
        for _ in range(30):
            if not taeda.equal(factory(p)(batch[0]), expected):
                wrong.append(p)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(sets, want, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tied_weights_are_one_parameter():
    factory = functional.factory(Tied)
    assert factory.names == ("embedding.weight", "body.weight", "body.bias")
    model = factory(factory.init(0))
    module = model.module()
    assert module.head.weight is module.embedding.weight
