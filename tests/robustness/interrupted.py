"""Training steps that an exception ends at any point where Python code is called.

`python -m tests.robustness.interrupted COUNT`. Hooks, custom functions, modes, checkpoints and the
optimizer call `point()`, of which one raises. The exception must arrive as it was raised, what was
switched on must be off again, and a step after it must give the same bits as before.
"""

import contextlib
import faulthandler
import gc
import random
import sys
import warnings

import taeda
import taeda.nn.functional as F
from taeda import nn
from taeda.overrides import TorchFunctionMode
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils.checkpoint import checkpoint


class Interruption(Exception):
    pass


class Points:
    """Counts the places that a step passes; raises at one of them."""

    def __init__(self):
        self.passed, self.raise_at, self.error = 0, 0, None

    def arm(self, at, error):
        self.passed, self.raise_at, self.error = 0, at, error

    def __call__(self, *unused):
        self.passed += 1
        if self.passed == self.raise_at:
            raise self.error


point = Points()


class Function(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        point()
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        point()
        x, w = ctx.saved_tensors
        return grad * w, grad * x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(taeda.ones(4))

    def forward(self, x):
        point()
        x = F.gelu(self.linear(x))
        if x.requires_grad:
            x.register_hook(lambda g: point())
        return Function.apply(x, self.scale)


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        point()
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        point()
        return func(*args, **(kwargs or {}))


def passing(value):
    point()
    return value


@contextlib.contextmanager
def both(*contexts):
    with contextlib.ExitStack() as stack:
        for c in contexts:
            stack.enter_context(c)
        yield


AROUND = {
    "plain": contextlib.nullcontext,
    "saved hooks": lambda: taeda.autograd.graph.saved_tensors_hooks(passing, passing),
    "function mode": FunctionMode,
    "dispatch mode": DispatchMode,
    "autocast": lambda: taeda.autocast("cpu", dtype=taeda.bfloat16),
    "anomalies": lambda: both(
        taeda.autograd.set_detect_anomaly(True), taeda.autograd.graph.save_on_cpu()
    ),
    "checkpoint": contextlib.nullcontext,
    "second order": contextlib.nullcontext,
    "transforms": contextlib.nullcontext,
}
# The plain ones are cheap, and most of training is plain.
WEIGHTS = [20, 4, 2, 1, 2, 1, 2, 2, 1]


class Training:
    def __init__(self):
        taeda.manual_seed(1)
        self.first, self.second = Layer(), Layer()
        self.model = nn.Sequential(self.first, nn.LayerNorm(4), self.second, nn.Linear(4, 2))
        self.optimizer = taeda.optim.AdamW(self.model.parameters(), lr=0.01)
        self.x, self.y = taeda.randn(3, 4), taeda.tensor([0, 1, 1])
        self.parameters = list(self.model.parameters())
        self.hook()
        self.step("plain")  # the optimizer's state
        self.before = [p.detach().clone() for p in self.parameters]
        self.state = {p: self.copied(self.optimizer.state[p]) for p in self.parameters}
        self.expected, self.points = {}, {}
        for kind in AROUND:
            self.restore()
            point.arm(0, None)
            self.step(kind)
            self.points[kind] = point.passed
            self.expected[kind] = self.outcome()

    @staticmethod
    def copied(state):
        return {k: v.clone() if isinstance(v, taeda.Tensor) else v for k, v in state.items()}

    def hook(self):
        self.model.register_forward_pre_hook(lambda m, a: point())
        self.first.linear.register_forward_hook(lambda m, a, r: point())
        self.second.register_full_backward_pre_hook(lambda m, g: point())
        self.second.register_full_backward_hook(lambda m, g, h: point())
        self.first.scale.register_hook(lambda g: point())
        self.second.scale.register_post_accumulate_grad_hook(lambda p: point())
        taeda.autograd.graph.register_multi_grad_hook(self.parameters, point)
        self.optimizer.register_step_pre_hook(lambda o, a, k: point())
        self.optimizer.register_step_post_hook(lambda o, a, k: point())

    def restore(self):
        with taeda.no_grad():
            for p, value in zip(self.parameters, self.before, strict=True):
                p.copy_(value)
                for name, kept in self.state[p].items():
                    if isinstance(kept, taeda.Tensor):
                        self.optimizer.state[p][name].copy_(kept)

    def outcome(self):
        return [t.detach().clone() for p in self.parameters for t in (p, p.grad)]

    def step(self, kind):
        self.optimizer.zero_grad()
        with AROUND[kind]():
            if kind == "checkpoint":
                hidden = checkpoint(self.first, self.x, use_reentrant=False)
                output = self.model[1:](hidden)
            elif kind == "transforms":
                output = taeda.func.vmap(passing)(self.model(self.x))
            else:
                output = self.model(self.x)
            output.grad_fn.register_hook(lambda a, b: point())
            loss = F.cross_entropy(output.float(), self.y)
            if kind == "second order":
                grads = taeda.autograd.grad(loss, self.parameters, create_graph=True)
                loss = loss + sum(g.square().sum() for g in grads)
            loss.backward()
        self.optimizer.step()

    def is_clean(self):
        assert taeda.is_grad_enabled() and not taeda.is_autocast_enabled("cpu")
        assert not taeda.is_anomaly_enabled() and not taeda.is_inference_mode_enabled()
        before = point.passed
        w = taeda.ones(2, requires_grad=True)
        (w * w).sum().backward()  # no mode and no hook of saved tensors is on
        assert point.passed == before and w.grad.tolist() == [2.0, 2.0]

    def interrupt(self, kind, pick):
        error = pick.choice([Interruption, KeyboardInterrupt, MemoryError, RuntimeError])("x")
        point.arm(pick.randrange(1, self.points[kind] + 1), error)
        try:
            self.step(kind)
        except BaseException as caught:
            if caught is not error:
                raise
        else:
            raise AssertionError(f"{kind} at {point.raise_at}: the exception was lost")
        point.arm(0, None)
        error.__traceback__ = None

    def check(self, kind):
        self.is_clean()
        self.restore()
        point.arm(0, None)
        self.step(kind)
        assert point.passed == self.points[kind], f"{kind}: other hooks ran after an exception"
        for a, b in zip(self.outcome(), self.expected[kind], strict=True):
            assert taeda.equal(a, b), f"{kind}: other bits after an exception"


def held():
    gc.collect()
    return taeda._C.cpu_memory_stats()["allocated"]


def main(count, seed=5):
    faulthandler.enable()
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    pick, training = random.Random(seed), Training()
    kinds = list(AROUND)
    made, checked, memory = 0, 0, None
    while made < count:
        for _ in range(5):
            (kind,) = pick.choices(kinds, WEIGHTS)
            training.interrupt(kind, pick)
            made += 1
        training.check(pick.choices(kinds, WEIGHTS)[0])
        checked += 1
        if checked == 200:
            memory = held()
    assert memory is None or held() <= memory + 10_000, (memory, held())
    print("training steps (interrupted, then made whole):", made, checked)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
