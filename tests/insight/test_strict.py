"""strict raises for mistakes and for nothing else, and leaves no trace when it ends."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import taeda
from taeda import nn
from taeda.insight import TrainingMistake
from taeda.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *(EXAMPLES / "torch_programs").glob("*.py")])
# A program runs under strict, and the losses of its first steps are explained.
RUN = """
import runpy, sys, taeda
from taeda import compat
from taeda.nn._module.hooks import register_module_forward_pre_hook
compat.install()
taeda.strict(every=2).enable()
strict_backward, called, explained, mistakes = taeda.Tensor.backward, {}, [], {}

def enter(module, args):
    called[id(module)] = module

def backward(loss, *args, **kwargs):
    for optimizer in list(taeda.optim.optimizer.alive) if len(explained) < 5 else ():
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        sizes = {m: len(own & {id(p) for p in m.parameters()}) for m in called.values()}
        model = max(sizes, key=sizes.get, default=None)
        if model is not None and sizes[model]:
            mistakes[id(optimizer)] = taeda.explain(loss, model, optimizer).mistakes
    return strict_backward(loss, *args, **kwargs)

def before_step(optimizer, args, kwargs):
    if len(explained) < 5 and id(optimizer) in mistakes:
        explained.append(mistakes.pop(id(optimizer)))
        assert not explained[-1], explained[-1]
        mistakes.clear()

register_module_forward_pre_hook(enter)
taeda.optim.optimizer.register_optimizer_step_pre_hook(before_step)
taeda.Tensor.backward = backward
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
print("explained", len(explained))
"""
WITHOUT_OPTIMIZER = {"log_mean_gradient"}


def setting():
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    return model, taeda.optim.Adam(model.parameters(), lr=0.01), taeda.randn(6, 4)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_found_in_the_examples(program, tmp_path):
    arguments = {"digits": ["--epochs", "2"], "sine_regression": ["--epochs", "20"]}
    command = [sys.executable, "-W", "error", "-c", RUN, str(program)]
    done = subprocess.run(
        [*command, *arguments.get(program.stem, [])],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    explained = int(done.stdout.split()[-1])
    assert explained == (0 if program.stem in WITHOUT_OPTIMIZER else 5)


def test_the_same_results():
    def train():
        model, optimizer, x = setting()
        for _ in range(20):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return model[0].weight.detach()

    plain = train()
    with taeda.strict(every=1):
        assert taeda.equal(train(), plain)
    assert taeda.equal(taeda.strict()(train)(), plain)


def test_no_trace_remains():
    model, optimizer, x = setting()
    backward, run = taeda.Tensor.backward, taeda._C._run_backward
    switch = taeda.strict().enable()
    later = taeda.optim.SGD(model.parameters(), lr=0.1)
    assert taeda._C._run_backward is not run
    model(x).mean().backward()
    optimizer.step()
    assert "step" in vars(later) and "step" in vars(optimizer)
    switch.disable()
    assert taeda.Tensor.backward is backward and taeda._C._run_backward is run
    assert "step" not in vars(later) and "step" not in vars(optimizer)
    assert nn.Module._call_hooks is None and not taeda.optim.optimizer.on_new
    optimizer.step()
    with pytest.raises(RuntimeError, match="has not been enabled"):
        switch.disable()


def test_zero_grad_in_every_way():
    model, optimizer, x = setting()

    def by_hand():
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()

    ways = [
        optimizer.zero_grad,
        model.zero_grad,
        lambda: optimizer.zero_grad(set_to_none=False),
        by_hand,
    ]
    for zero in ways:
        with taeda.strict():
            for _ in range(6):
                zero()
                model(x).square().mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_accumulation(accumulate):
    model, optimizer, x = setting()

    def train(backwards):
        for _ in range(5):
            optimizer.zero_grad()
            for _ in range(backwards):
                taeda.autograd.backward(model(x).square().mean())
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    with taeda.strict(accumulate=accumulate):
        train(accumulate)
        with pytest.raises(TrainingMistake, match=f"sum of {accumulate + 1} backward passes"):
            train(accumulate + 1)


def test_mistakes_that_begin_later():
    model, optimizer, x = setting()

    def train(before_step=lambda: None, loss=lambda out: out.square().mean()):
        for step in range(60):
            optimizer.zero_grad()
            loss(model(x)).backward()
            if step == 40:
                before_step()
            optimizer.step()

    with taeda.strict(every=1):
        train()
        with pytest.raises(TrainingMistake, match="evaluation mode") as caught:
            train(model.eval)
        assert caught.value.findings[0].kind == "eval" and "model.train()" in str(caught.value)
        model.train()
        with pytest.raises(TrainingMistake, match="gradients of `0.weight` are not finite"):
            train(lambda: model[0].weight.grad.fill_(float("nan")))
        optimizer.zero_grad()
        before = model[0].weight.detach().clone()
        with pytest.raises(TrainingMistake, match="sqrt is where it first arises"):
            train(loss=lambda out: (out - out.detach()).sqrt().sum())
        assert taeda.equal(before, model[0].weight)  # nothing was changed


def test_the_place_is_known_in_steps_that_are_not_checked():
    model, optimizer, x = setting()
    with taeda.strict(every=1000):
        for step in range(6):
            optimizer.zero_grad()
            out = model(x)
            if step < 5:
                out.square().mean().backward()
                optimizer.step()
        (out - out.detach()).sqrt().sum().backward()
        with pytest.raises(TrainingMistake, match="sqrt is where they first arise"):
            optimizer.step()


def test_two_optimizers_and_a_closure():
    model, _, x = setting()
    other = nn.Linear(1, 1)
    first = taeda.optim.SGD(model.parameters(), lr=0.01)
    second = taeda.optim.LBFGS(other.parameters(), max_iter=3)

    def closure():
        second.zero_grad()
        loss = (other(model(x).detach()) - 1).square().mean()
        loss.backward()
        return loss

    with taeda.strict(every=1):
        for _ in range(5):
            first.zero_grad()
            other(model(x)).square().mean().backward()
            first.step()
            second.step(closure)


def test_gradients_that_another_loop_has_left():
    model, optimizer, x = setting()
    other, _, _ = setting()
    other(x).square().mean().backward()
    idle = taeda.optim.SGD(other.parameters(), lr=0.01)

    def train(module, by, steps, clear=True):
        for _ in range(steps):
            if clear:
                by.zero_grad()
            module(x).square().mean().backward()
            by.step()

    with taeda.strict(every=1000):
        train(model, optimizer, 20)
        with pytest.raises(TrainingMistake, match="sum of 2 backward passes"):
            train(other, idle, 3, clear=False)
        train(other, idle, 20)
        train(model, optimizer, 100)
        with pytest.raises(TrainingMistake, match="sum with one that a step has used"):
            train(other, idle, 3, clear=False)
        train(other, idle, 20)
        train(model, optimizer, 100)
        with pytest.raises(TrainingMistake, match="no backward"):
            idle.step()


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("forgotten", [None, "critic", "maker"])
def test_two_networks_trained_in_turns(rounds, forgotten):
    """Gradients that the other network's loss leaves are no mistake, if they are cleared."""
    taeda.manual_seed(0)
    maker, critic = nn.Linear(4, 4), nn.Linear(4, 1)
    of_maker = taeda.optim.SGD(maker.parameters(), lr=0.01)
    of_critic = taeda.optim.Adam(critic.parameters(), lr=0.01)

    def turn(clear=True):
        for _ in range(rounds):
            if clear or forgotten != "critic":
                of_critic.zero_grad()
            fake, real = maker(taeda.randn(6, 4)), taeda.randn(6, 4)
            (F.softplus(critic(fake.detach())) + F.softplus(-critic(real))).mean().backward()
            of_critic.step()
        if clear or forgotten != "maker":
            of_maker.zero_grad()
        F.softplus(-critic(maker(taeda.randn(6, 4)))).mean().backward()
        of_maker.step()

    with taeda.strict():
        for _ in range(40):
            turn()
        if forgotten:
            with pytest.raises(TrainingMistake, match="sum with one that a step has used"):
                turn(False)
        else:
            turn(False)


def test_networks_that_train_in_turns():
    """The generator's loss adds to gradients that the other network's step has used."""
    taeda.manual_seed(0)
    makes, judges, z = nn.Linear(3, 4), nn.Linear(4, 1), taeda.randn(5, 3)
    first = taeda.optim.SGD(judges.parameters(), lr=0.01)
    second = taeda.optim.SGD(makes.parameters(), lr=0.01)

    def train(rounds, clear=True):
        for _ in range(rounds):
            if clear:
                first.zero_grad()
            judges(makes(z).detach()).mean().backward()
            first.step()
            second.zero_grad()
            judges(makes(z)).mean().backward()
            second.step()

    with taeda.strict() as switch:
        train(100)
        with pytest.raises(TrainingMistake, match="a sum with one that a step has used"):
            train(1, clear=False)
        train(100)
        (session,) = switch._sessions
        slow, look = [], session.before_backward
        session.before_backward = lambda *args: slow.append(args) or look(*args)
        train(100)
        assert len(slow) < 50  # of 200: most passes need the quick checks alone


def test_a_functional_model_and_an_optimizer_share_a_loss():
    factory = taeda.functional.factory(nn.Linear(4, 2))
    sgd = taeda.functional.optimizer(taeda.optim.SGD, lr=0.1)
    parameters = factory.init(0)
    state = sgd.init(parameters)
    _, _, x = setting()
    head = nn.Linear(2, 1)
    optimizer = taeda.optim.SGD(head.parameters(), lr=0.1)
    with taeda.strict(every=1):
        for _ in range(4):
            optimizer.zero_grad()
            model = factory(parameters)
            loss = head(model(x)).square().mean()
            gradient = model.backward(loss, retain_graph=True)
            loss.backward()
            optimizer.step()
            parameters, state = sgd.step(parameters, gradient, state)


def test_scaled_losses_that_overflow_are_skipped():
    model, optimizer, x = setting()
    scaler = taeda.amp.GradScaler("cpu", init_scale=2.0**120)
    with taeda.strict():
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale((model(x) * 1e4).square().sum()).backward()
            scaler.step(optimizer)
            scaler.update()


def test_options():
    with pytest.raises(ValueError, match="accumulate must be at least 1"):
        taeda.strict(accumulate=0)
    with pytest.raises(ValueError, match="every must be at least 1"):
        taeda.strict(every=0)
    with pytest.raises(ValueError, match=r"allow has \['evil'\]; the names are"):
        taeda.strict(allow=["evil"])
    model, optimizer, x = setting()
    model.eval()
    with taeda.strict(allow="eval"):
        F.mse_loss(model(x), taeda.zeros(6, 1)).backward()
        optimizer.step()


def test_lazy_empty_and_differentiable_optimizers():
    lazy = nn.LazyLinear(1)
    first = taeda.optim.SGD(lazy.parameters(), lr=0.1)
    empty = taeda.optim.SGD([{"params": []}], lr=0.1)
    start = taeda.ones(2, requires_grad=True)
    inner = taeda.optim.SGD([start.clone()], lr=0.1, differentiable=True)
    with taeda.strict(every=1):
        for _ in range(3):
            first.zero_grad()
            lazy(taeda.ones(2, 3)).mean().backward()
            first.step()
            empty.step()
    assert inner.param_groups


def test_a_mistake_can_be_pickled():
    model, optimizer, _ = setting()
    with taeda.strict(), pytest.raises(TrainingMistake) as caught:
        optimizer.step()
    other = pickle.loads(pickle.dumps(caught.value))
    assert str(other) == str(caught.value) and other.findings == caught.value.findings


# ---- steps of which only the quick checks are made ----------------------------------------------


def in_quick_steps(model, optimizer, x, steps=12):
    """Train until strict only makes its quick checks."""
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def alone(switch, optimizer):
    """What strict keeps, without optimizers of other tests, and waiting for nothing."""
    session = switch._sessions[0]
    session.watches = [w for w in session.watches if w.optimizer() is optimizer]
    session.due = False
    session.disarm()
    return session


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m, o, x: o.step(), "the gradient is the one of the last step"),
        (lambda m, o, x: (m(x).mean().backward(), o.step()), "a sum with one that a step has used"),
        (lambda m, o, x: (o.zero_grad(), o.step()), "no parameter has a gradient"),
        (lambda m, o, x: (m.eval(), in_quick_steps(m, o, x, 1)), "evaluation mode"),
        (
            lambda m, o, x: (o.zero_grad(), (m(x) * 0).log().mean().backward(), o.step()),
            "log gives values that are not finite",
        ),
        (
            lambda m, o, x: (
                o.zero_grad(), m(x).mean().backward(), m(x).mean().backward(), o.step()
            ),
            "the sum of 2 backward passes",
        ),
    ],
)  # fmt: skip
def test_what_the_quick_checks_find(wrong, message):
    model, optimizer, x = setting()
    with taeda.strict() as switch:
        in_quick_steps(model, optimizer, x)
        session = alone(switch, optimizer)
        session.next_norm, session.passes.patience = 2**62, 64
        in_quick_steps(model, optimizer, x, 3)
        assert session.passes.patience == 61 and not session.due
        with pytest.raises(TrainingMistake, match=message):
            wrong(model, optimizer, x)


def test_the_clock_is_read_again_after_some_steps():
    model, optimizer, x = setting()
    with taeda.strict() as switch:
        in_quick_steps(model, optimizer, x)
        session = alone(switch, optimizer)
        session.next_norm, session.passes.patience = 0, 5
        in_quick_steps(model, optimizer, x, 5)
        assert session.next_norm == 0
        in_quick_steps(model, optimizer, x, 1)
        assert session.next_norm > 0
        # A new optimizer is seen at once.
        session.next_norm, session.passes.patience = 2**62, 64
        other = taeda.optim.SGD(model.parameters(), lr=0.1)
        assert session.passes.patience == 0
        in_quick_steps(model, other, x, 1)
        with pytest.raises(TrainingMistake, match="no backward"):
            other.step()


def test_accumulated_gradients_need_quick_checks_alone():
    model, optimizer, x = setting()

    def train(steps, passes=3):
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=False)
            for _ in range(passes):
                model(x).square().mean().backward()
            optimizer.step()

    with taeda.strict(accumulate=3) as switch:
        train(12)
        session = alone(switch, optimizer)
        session.next_norm, session.passes.patience = 2**62, 64
        train(4)
        assert session.passes.patience == 64 - 4 * 3 and not session.due
        with pytest.raises(TrainingMistake, match="sum of 4 backward passes"):
            train(1, passes=4)


class Halving(taeda.optim.Optimizer):
    """Its step takes more than a closure."""

    def __init__(self, params):
        super().__init__(params, {})
        self.calls = []

    def step(self, factor=0.5, *, note=""):
        self.calls.append((factor, note))
        for group in self.param_groups:
            for p in group["params"]:
                p.data.mul_(factor)


def test_a_step_with_arguments_of_its_own():
    model, _, x = setting()
    optimizer = Halving(model.parameters())
    with taeda.record(model, optimizer) as run, taeda.strict(), taeda.record(model, optimizer):
        for _ in range(5):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step(0.9, note="once")
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        with pytest.raises(TrainingMistake, match="no backward"):
            optimizer.step()
    assert optimizer.calls == [(0.9, "once"), (0.5, "")] * 5
    assert len(run.losses) == 10 and all(loss is not None for loss in run.losses)
