"""What people find obscure about the ordinary training loop, and what the tools say or do instead.

Each test is one complaint: code as people write it, then what explain, wiring, strict, preview,
record, Trainer and functional make of it.
"""

from __future__ import annotations

import copy
import inspect

import pytest

import taeda
from taeda import func, functional, nn, optim, training
from taeda.insight import TrainingMistake
from taeda.nn import functional as F
from tests.functional.cases import CASES


@pytest.fixture
def classifier():
    """A network for ten classes of samples with 128 features, as the loop of the essay has it."""
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10), nn.LogSoftmax(dim=1))
    data = [(taeda.randn(20, 128), taeda.randint(0, 10, (20,))) for _ in range(3)]
    return model, nn.NLLLoss(), optim.SGD(model.parameters(), lr=0.01), data


@pytest.fixture
def binary():
    """The network of the question: one probability for each sample."""
    taeda.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(60, 60), nn.ReLU(), nn.Linear(60, 30), nn.ReLU(), nn.Linear(30, 1), nn.Sigmoid()
    )
    x = taeda.randn(16, 60)
    y = (x.sum(1, keepdim=True) > 0).float()
    return model, nn.BCELoss(), optim.SGD(model.parameters(), lr=0.1), x, y


def kinds(explanation):
    return {finding.kind for finding in explanation.mistakes}


# ---- the essay on a functional API --------------------------------------------------------------


def test_the_optimizer_shares_the_parameters_of_the_model(classifier):
    """Making an optimizer ties it to tensors; nothing says which, or when the tie is broken."""
    model, loss_fn, optimizer, [(x, y), *_] = classifier
    rows = taeda.explain(loss_fn(model(x), y), model, optimizer).rows
    assert [(row.name, row.group) for row in rows] == [
        ("0.weight", 0), ("0.bias", 0), ("2.weight", 0), ("2.bias", 0)
    ]  # fmt: skip
    model[2] = nn.Linear(64, 10)  # the optimizer goes on with the old layer
    found = taeda.explain(loss_fn(model(x), y), model, optimizer)
    assert kinds(found) == {"replaced"} and "2.weight" in str(found.mistakes[0])
    with taeda.strict(), pytest.raises(TrainingMistake, match=r"in place of `2\.weight`"):
        loss_fn(model(x), y).backward()
        optimizer.step()
    # The functional optimizer is made without parameters, and shares none.
    assert "params" not in inspect.signature(functional.optimizer).parameters


def test_gradients_accumulate_unless_told_not_to(classifier):
    """Who forgets to clear them sums over all steps, and nothing says so."""
    model, loss_fn, optimizer, data = classifier
    with taeda.strict(), pytest.raises(TrainingMistake, match="a sum with one that a step has use"):
        for x, y in data:
            loss_fn(model(x), y).backward()
            optimizer.step()
    found = taeda.explain(loss_fn(model(x), y), model, optimizer)
    assert kinds(found) == {"zero_grad"} and "optimizer.zero_grad()" in found.mistakes[0].mend
    # A trainer clears what it is going to fill; there is no zero_grad() to forget.
    trainer = taeda.Trainer(model, loss_fn, optimizer)
    norms = [trainer.step(x, y, gradients=True).gradients.norm() for _ in range(4)]
    assert max(norms) < 1.1 * min(norms)
    # A gradient that is a value is that of its loss, however often it is computed.
    made = functional.factory(model)(functional.Parameters.of(model))
    gradients = [made.backward(loss_fn(made(x), y)) for _ in range(3)]
    assert gradients[0] == gradients[1] == gradients[2]


def test_the_loss_hides_the_layers_that_backward_goes_through(classifier):
    """backward() is called on a number, and uses a network that is nowhere in sight."""
    model, loss_fn, _, [(x, y), *_] = classifier
    loss = loss_fn(model(x), y)
    weight, *_, bias = taeda.explain(loss, model).rows
    assert weight.ops == ("linear", "relu", "linear", "log_softmax", "nll_loss")
    assert weight.modules == ("0", "1", "2", "3") and bias.modules == ("2", "3")
    drawn = [box.title for box in taeda.wiring(loss, model).boxes if box.kind != "parameters"]
    assert drawn == ["0: Linear", "1: ReLU", "2: Linear", "3: LogSoftmax", "loss"]


def test_backward_returns_nothing(classifier):
    """What it computes is put away into .grad of each parameter."""
    model, loss_fn, optimizer, [(x, y), *_] = classifier
    found = taeda.explain(loss_fn(model(x), y), model, optimizer)
    assert {str(row.grad) for row in found.rows} == {"none"}
    loss = loss_fn(model(x), y)
    assert loss.backward() is None
    found = taeda.explain(loss, model, optimizer)
    assert {str(row.grad) for row in found.rows} == {"fresh"}
    assert found.rows[0].grad_norm == pytest.approx(model[0].weight.grad.norm().item())
    # A model that is a value returns the gradient, and leaves all else as it was.
    parameters = functional.Parameters.of(model)
    made = functional.factory(model)(parameters)
    gradient = made.backward(loss_fn(made(x), y))
    assert {name: tensor.shape for name, tensor in gradient.items()} == {
        name: p.shape for name, p in model.named_parameters()
    }
    assert all(taeda.equal(gradient[name], p.grad) for name, p in model.named_parameters())
    assert parameters == functional.Parameters.of(model)


def test_step_says_nothing_of_what_it_does(classifier):
    """It takes nothing and returns nothing: how large was the gradient, and how large the change?"""
    model, loss_fn, optimizer, [(x, y), *_] = classifier
    loss_fn(model(x), y).backward()
    before = functional.Parameters.of(model)
    planned = optimizer.preview()
    norms = [update.norm for update in planned.values()]
    assert functional.Parameters.of(model) == before  # it has only looked
    assert optimizer.step() is None
    names = [name for name, _ in model.named_parameters()]
    for name, update, norm in zip(names, planned.values(), norms, strict=True):
        now = model.get_parameter(name).detach()
        assert taeda.equal(update.after, now) and update.change.shape == now.shape
        assert norm == pytest.approx((now - before[name]).norm().item(), rel=1e-3)
    step = taeda.Trainer(model, loss_fn, optimizer).step(x, y, gradients=True, updates=True)
    assert step.updates.norm() == pytest.approx(0.01 * step.gradients.norm().item(), rel=1e-3)
    sgd = functional.optimizer(optim.SGD, lr=0.01, donate=False)
    after, _ = sgd.step(before, step.gradients, sgd.init(before))
    assert after.diff(before)["2.bias"].norm == pytest.approx(
        0.01 * step.gradients.norms()["2.bias"], rel=1e-3
    )


def test_nobody_owns_the_state(classifier, tmp_path):
    """Three objects change the same tensors, and none of them has the whole of it."""
    model, loss_fn, optimizer, data = classifier

    def trained(trainer, batches):
        return [trainer.step(*batch).loss for batch in batches]

    trainer = taeda.Trainer(model, loss_fn, optimizer)
    trained(trainer, data)
    trainer.save(tmp_path / "all.pt")
    rest = trained(trainer, data)
    other = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10), nn.LogSoftmax(dim=1))
    resumed = taeda.Trainer(other, loss_fn, optim.SGD(other.parameters(), lr=1.0))
    assert resumed.resume(tmp_path / "all.pt") and trained(resumed, data) == rest
    with pytest.raises(ValueError, match="holds none of the model's parameters"):
        taeda.Trainer(other, loss_fn, optimizer)


def test_gradients_of_any_composition_of_functions():
    """The good side of three separate objects, which an owner of them all must not take away."""
    taeda.manual_seed(0)
    x = taeda.rand(3, 5, requires_grad=True)
    output = x.log().mean()
    explanation = taeda.explain(output)
    assert not explanation.findings
    box = taeda.wiring(output).boxes[0]
    assert box.kind == "loss"
    output.backward()
    taeda.testing.assert_close(x.grad, 1 / (15 * x.detach()))
    assert taeda.equal(func.grad(lambda x: x.log().mean())(x.detach()), x.grad)


def test_a_model_that_steps_itself(classifier):
    """The first proposal: one object that is given a batch, and does the rest."""
    model, loss_fn, optimizer, data = classifier
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    expected = functional.Parameters.of(model)
    model.load_state_dict(start)
    trainer = taeda.Trainer(model, loss_fn, optimizer)
    for batch in data:
        trainer.step(*batch)
    assert functional.Parameters.of(model) == expected
    model.load_state_dict(start)
    taeda.Trainer(model, loss_fn, optimizer).fit(data, epochs=1)  # or all of it in one call
    assert functional.Parameters.of(model) == expected


def test_looking_at_a_gradient_takes_a_debugger(classifier):
    """Even so, what happens within the object at some step is out of reach."""
    model, loss_fn, optimizer, data = classifier
    seen = []

    class Look(training.Callback):
        def before_update(self, trainer):
            seen.append(trainer.model[0].weight.grad.norm().item())

    trainer = taeda.Trainer(model, loss_fn, optimizer, callbacks=[Look()])
    with taeda.record(model, optimizer, every=1) as run:
        losses = [trainer.step(*batch).loss for batch in data]
    assert run.losses == losses
    assert list(run.gradients["0.weight"].values()) == pytest.approx(seen) and len(seen) == 3


def test_a_loop_of_values(classifier):
    """The second proposal: a factory of models, immutable parameters, and results for all calls."""
    model, loss_fn, optimizer, data = classifier
    factory = functional.factory(model)
    sgd = functional.optimizer(optim.SGD, lr=0.01, donate=False)
    parameters = functional.Parameters.of(model)
    state, versions = sgd.init(parameters), []
    for x, y in data:
        network = factory(parameters)
        loss = loss_fn(network(x), y)
        gradient = network.backward(loss)
        versions.append((parameters, parameters.clone(), gradient.norm()))
        parameters, state = sgd.step(parameters, gradient, state)
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    assert parameters == functional.Parameters.of(model)
    assert all(version == copy and norm > 0 for version, copy, norm in versions)
    with pytest.raises(TypeError):
        parameters["0.bias"] = parameters["0.bias"]


def test_immutable_weights_take_new_memory_in_every_step(classifier):
    """By default they do not: a step is given the old ones up, and says so to who reads them."""
    model, loss_fn, _, [(x, y), *_] = classifier
    factory, adam = functional.factory(model), functional.optimizer(optim.Adam)
    parameters = functional.Parameters.of(model)
    state, places = adam.init(parameters), set()
    for _ in range(4):
        network = factory(parameters)
        old = parameters
        parameters, state = adam.step(parameters, network.backward(loss_fn(network(x), y)), state)
        places.add(parameters._tensors["0.weight"].data_ptr())
    assert len(places) == 1
    with pytest.raises(RuntimeError, match="donated to"):
        old["0.weight"]


@pytest.mark.parametrize("kind", ["lstm", "batch norm", "tied"])
def test_other_networks_than_feedforward_ones(kind):
    """Recurrent and convolutional networks, it is feared, need another interface."""
    case = CASES[kind]
    taeda.manual_seed(0)
    x, y = case.batch()
    factory = functional.factory(case.make)
    adam = functional.optimizer(optim.Adam, lr=0.02)
    parameters, buffers = factory.init(0), factory.buffers(0)
    state, losses = adam.init(parameters), []
    for _ in range(20):
        network = factory(parameters, buffers)
        loss = F.cross_entropy(network(x), y)
        gradient, buffers = network.backward(loss), network.buffers
        parameters, state = adam.step(parameters, gradient, state)
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


# ---- the question what binds loss, optimizer and model ------------------------------------------


def test_the_loss_is_wired_to_nothing(binary):
    """The loss function gets predictions and labels, neither the model nor the optimizer."""
    model, loss_fn, optimizer, x, y = binary
    found = taeda.explain(loss_fn(model(x), y), model, optimizer)
    assert not found.findings and all(row.reached for row in found.rows)
    assert found.rows[0].ops[-1] == "binary_cross_entropy"
    picture = taeda.wiring(loss_fn(model(x), y), model, optimizer)
    assert {box.kind for box in picture.boxes} == {"module", "loss", "parameters", "optimizer"}
    assert "gradients, by loss.backward()" in picture.svg()
    # Where the wire is cut, they say so.
    cut = loss_fn(model(x).detach(), y)
    assert kinds(taeda.explain(cut, model, optimizer)) == {"detached"}


def test_backward_knows_what_to_do(binary):
    """The way back has been recorded: each parameter's operations, from it to the loss."""
    model, loss_fn, optimizer, x, y = binary
    rows = {row.name: row for row in taeda.explain(loss_fn(model(x), y), model, optimizer).rows}
    assert rows["4.bias"].ops == ("linear", "sigmoid", "binary_cross_entropy")
    assert rows["0.bias"].ops == ("linear", "relu", "linear", "relu", *rows["4.bias"].ops)


def test_the_optimizer_knows_of_the_loss(binary):
    """By the .grad of the tensors that it holds, and by nothing else."""
    model, loss_fn, optimizer, x, y = binary

    def states(loss):
        return {str(row.grad) for row in taeda.explain(loss, model, optimizer).rows}

    loss = loss_fn(model(x), y)
    before = states(loss)
    expected = [row.update for row in taeda.explain(loss, model, optimizer).rows]
    loss.backward()
    after = states(loss)
    start = functional.Parameters.of(model)
    optimizer.step()
    changes = functional.Parameters.of(model).diff(start)
    assert (before, after, states(loss)) == ({"none"}, {"fresh"}, {"stale"})
    assert [change.norm for change in changes.values()] == pytest.approx(expected, rel=1e-3)
    optimizer.zero_grad()
    with taeda.strict(), pytest.raises(TrainingMistake, match="so that the step changes nothing"):
        optimizer.step()


def test_backward_adds_to_what_is_there(binary):
    model, loss_fn, optimizer, x, y = binary
    for count in (1, 2, 3):
        loss = loss_fn(model(x), y)
        loss.backward()
        found = taeda.explain(loss, model, optimizer)
        expected = "fresh" if count == 1 else f"sum of {count}"
        assert {str(row.grad) for row in found.rows} == {expected}


def test_zero_grad_may_stand_before_or_after_the_forward_but_not_after_backward(binary):
    model, loss_fn, optimizer, x, y = binary
    with taeda.strict(every=1):
        for _ in range(3):  # the order of the question's loop
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with pytest.raises(TrainingMistake, match=r"loss\.backward\(\); optimizer\.step\(\)"):
            loss_fn(model(x), y).backward()
            optimizer.zero_grad()
            optimizer.step()


def test_the_optimizer_may_hold_a_part_of_the_parameters(binary):
    model, loss_fn, _, x, y = binary
    model = copy.deepcopy(model)  # whose parameters no other optimizer has
    optimizer = optim.SGD(model[2:].parameters(), lr=0.1)
    found = taeda.explain(loss_fn(model(x), y), model, optimizer)
    assert kinds(found) == {"partial"}
    assert [row.group for row in found.rows] == [None, None, 0, 0, 0, 0]
    with taeda.strict(), pytest.raises(TrainingMistake, match=r"reaches `0\.weight`, `0\.bias`"):
        loss_fn(model(x), y).backward()
        optimizer.step()
    model[0].requires_grad_(False)  # if it is meant
    assert not taeda.explain(loss_fn(model(x), y), model, optimizer).mistakes
