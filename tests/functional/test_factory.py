"""Networks as functions of their parameters, and what they compose with."""

from __future__ import annotations

import threading

import pytest

import taeda
from taeda import func, functional, nn
from taeda.functional import Parameters
from taeda.utils.checkpoint import checkpoint
from tests.functional.cases import CASES, F, Tied


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


@pytest.fixture
def batch():
    taeda.manual_seed(3)
    return taeda.randn(6, 4), taeda.randint(0, 3, (6,))


def loss_of(factory):
    return lambda p, x, y: F.cross_entropy(factory.apply(p, None, x)[0], y)


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


# ---- what it composes with -----------------------------------------------------------------------


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


def test_tied_weights_are_one_parameter():
    factory = functional.factory(Tied)
    assert factory.names == ("embedding.weight", "body.weight", "body.bias")
    model = factory(factory.init(0))
    module = model.module()
    assert module.head.weight is module.embedding.weight


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


# ---- what is said against the ordinary loop, and what is true here -------------------------------


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


# ---- loops in steady state ----------------------------------------------------------------------


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
