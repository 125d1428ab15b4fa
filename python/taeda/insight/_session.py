"""One run of `strict`: what it sees of each backward pass and each step."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from math import isfinite
from time import perf_counter_ns
from typing import Any

import taeda
from taeda import _C
from taeda.nn._module.hooks import register_module_forward_hook, register_module_forward_pre_hook
from taeda.optim import optimizer as optimizers

from . import _hooks
from ._checks import coverage, leaves_of, region_of, shares, size_of
from ._context import Finding
from ._findings import listed
from ._graph import Graph
from ._mistakes import expanded, first_in_backward, first_in_forward, fix_for, wrong_input
from ._watch import Watch

ALWAYS = 3  # steps at the beginning in which everything is checked
SHARE = 400  # each of two kinds of costly checks takes one part in so many of the time
PATIENCE = 64  # backward passes after which the clock is read again
MOST_CALLS = 200  # of modules that are noted while waiting for a backward pass

_ZERO_GRAD = "optimizer.zero_grad()  # in every step, before loss.backward()"


class TrainingMistake(RuntimeError):
    """A mistake in a training loop that `strict` found.

    Attributes:
        findings: what it is, each a `Finding` with the line that mends it.
    """

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings

    def __reduce__(self) -> Any:
        return type(self), (self.findings,)


class Session:
    """What `strict` keeps while it is on."""

    def __init__(self, accumulate: int, allow: frozenset[str], every: int | None) -> None:
        self.accumulate = accumulate
        self.allow = allow
        self.every = every
        self.watches: list[Watch] = []
        self.passes = _C._BackwardWatch(_hooks.told)
        self.steps = 0
        self.roots: dict[int, weakref.ref[Any]] = {}
        self.kept: set[int] = set()  # the numbers of graphs that were retained, or checked
        self.graph: Graph | None = None  # of the last checked backward pass
        self.root: Any = None  # where the graph of the last backward pass began, if it is due
        self.due = True  # whether the next step is to look at everything
        self.place = ""  # where values that are not finite arose
        self.next_all = self.next_norm = 0
        self.cost = 0
        self.handles: list[Any] = []
        self.fresh: list[weakref.ref[Any]] = []  # optimizers that were made since
        self.calls = self.depth = 0

    def start(self) -> None:
        """Begin."""
        for optimizer in list(optimizers.alive):
            if leaves_of(optimizer):
                self.watches.append(Watch(optimizer, self))
        _hooks.listen(self)
        optimizers.on_new.append(self._new)
        self.arm()

    def stop(self) -> None:
        """End."""
        self.disarm()
        optimizers.on_new.remove(self._new)
        _hooks.leave(self)
        for watch in self.watches:
            watch.stop()

    def report(self, kind: str, who: str, text: str, mend: str, names: Any = ()) -> None:
        """Raise a mistake, unless it is allowed."""
        if kind not in self.allow:
            raise TrainingMistake([Finding(kind, f"{who}: {text}", mend, tuple(names))])

    # ---- modules that are called, while a checked step is awaited -------------------------------

    def arm(self) -> None:
        """Note which modules are called until the next backward pass, and check that."""
        self.calls = self.depth = self.passes.patience = 0
        if not self.handles:
            self.handles = [
                register_module_forward_pre_hook(self._enter),
                register_module_forward_hook(self._leave, always_call=True),
            ]

    def disarm(self) -> None:
        """Note them no more."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _enter(self, module: Any, args: Any) -> None:
        self.calls += 1
        if self.depth == 0 and taeda.is_grad_enabled():
            self.roots[id(module)] = weakref.ref(module)
        self.depth += 1

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        self.depth -= 1
        if self.calls > MOST_CALLS and self.depth == 0 and not taeda.is_grad_enabled():
            self.disarm()

    def models(self) -> list[Any]:
        """The outermost modules that were called."""
        found = [root() for root in self.roots.values()]
        return [module for module in found if module is not None]

    # ---- backward -------------------------------------------------------------------------------

    def before_backward(self, loss: Any, plain: bool) -> Callable[[], None]:
        """Look at the loss and at gradients that are still there."""
        try:
            if not isfinite(loss.item()):
                self.place = first_in_forward(Graph(loss, self._model()))
                self.due = True
        except (RuntimeError, TypeError, ValueError):  # several numbers
            pass
        if self.kept or self.handles or not plain:
            self._same_graph(loss, plain)
        if self.fresh or perf_counter_ns() >= self.next_norm:
            self._renew()
            self.root, self.due = loss.grad_fn, True
        self.passes.patience = 0 if self.kept or self.handles or self.due else PATIENCE
        self.passes.gradients = [watch.gradient for watch in self.watches]
        self.passes.before_pass()
        return self._checked(loss) if self.handles else self.passes.after_pass

    def _same_graph(self, loss: Any, plain: bool) -> None:
        if loss.grad_fn is None:
            return
        number = loss.grad_fn._sequence_nr()
        if number in self.kept:
            self.report(
                "graph_twice",
                "backward()",
                "this graph has been run already, so that its gradient is added twice",
                "loss = loss_fn(model(x), y)  # a new forward for each loss.backward()",
            )
        if not plain or self.handles:
            self.kept = {number} if len(self.kept) > MOST_CALLS else {*self.kept, number}

    def _new(self, optimizer: Any) -> None:
        self.fresh.append(weakref.ref(optimizer))
        self.passes.patience = 0

    def _renew(self) -> None:
        """Watch new optimizers, and forget those that are gone."""
        for reference in self.fresh:
            optimizer = reference()
            if optimizer is not None and leaves_of(optimizer):
                self.watches.append(Watch(optimizer, self))
        self.fresh.clear()
        self.watches = [watch for watch in self.watches if watch.optimizer() is not None]

    def _model(self) -> Any:
        """The called module with the most parameters."""
        models = self.models()
        return max(models, key=lambda m: sum(1 for _ in m.parameters()), default=None)

    def _checked(self, loss: Any) -> Callable[[], None]:
        start = perf_counter_ns()
        self.disarm()
        self.due = True
        self.graph = graph = Graph(loss, self._model())
        for finding in wrong_input(graph):
            if "logits" not in self.allow:
                raise TrainingMistake([finding])
        end = graph.watch()
        # Hooks cost the calls of modules and of derivatives about this much, beside what they do.
        self.cost = perf_counter_ns() - start + 5_000 * (self.calls + len(graph.ops))

        def after() -> None:
            end()
            self.cost += graph.spent[0]
            self.passes.after_pass()
            for finding in expanded(graph):
                if "broadcast" not in self.allow:
                    raise TrainingMistake([finding])
            self.place = self.place or first_in_backward(graph)

        return after

    # ---- step -----------------------------------------------------------------------------------

    def before_step(self, watch: Watch) -> None:
        """Check a step that is not as usual, or is due."""
        gradient, who = watch.gradient, f"{watch.name}.step"
        if gradient.sentinel.grad is None:
            with_grad = [p for p in watch.parameters if p.grad is not None]
            if with_grad:
                gradient.begin(min(with_grad, key=size_of))
            else:
                self._without_gradients(watch, who)
        elif gradient.stale:
            text = "the gradient is the one of the last step: no backward() has changed it since"
            mend = "optimizer.zero_grad(); loss.backward()  # before each optimizer.step()"
            self.report("stale", who, text, mend)
        elif gradient.sentinel.grad._version == 0:  # it was made anew by one backward pass
            gradient.begin(gradient.sentinel)
        self._of_one_backward(gradient, who)
        for root in watch.roots:
            model = root()
            if model is not None and not model.training:
                self._in_eval(model)
        if self.due:
            self._look_at_all(watch)
        gradient.stepped()

    def _of_one_backward(self, gradient: Any, who: str) -> None:
        """Raise for a gradient that is the sum of too many passes."""
        if gradient.reused:
            text = "the gradients are a sum with one that a step has used already"
            self.report("accumulated", who, text, _ZERO_GRAD)
        elif gradient.backwards > self.accumulate:
            text = f"the gradients are the sum of {gradient.backwards} backward passes"
            mend = f"{_ZERO_GRAD}; or taeda.strict(accumulate={gradient.backwards}) if it is meant"
            self.report("accumulated", who, text, mend)

    def _without_gradients(self, watch: Watch, who: str) -> None:
        if self.graph is not None:
            self._covered(watch, self.graph)
        self.report(
            "no_gradient",
            who,
            "no parameter has a gradient, so that the step changes nothing",
            "loss.backward(); optimizer.step()  # in this order, with zero_grad() before them",
        )
        self._modes(watch)

    def _in_eval(self, model: Any) -> None:
        """A model is in evaluation mode in a step."""
        self.report(
            "eval",
            "step()",
            f"the model ({type(model).__name__}) is in evaluation mode",
            "model.train()  # before the training loop, and after each evaluation",
        )

    def _covered(self, watch: Watch, graph: Graph) -> None:
        """Raise if the graph reaches parameters that no optimizer holds."""
        for finding in coverage(graph, watch.parameters, self.models()):
            if finding.kind not in self.allow:
                raise TrainingMistake([finding])

    def _look_at_all(self, watch: Watch) -> None:
        """Look at all gradients, and after a checked backward pass at the model."""
        start = perf_counter_ns()
        graph, root, place = self.graph, self.root, self.place
        self.graph, self.root, self.place, self.due = None, None, "", False
        self.kept.clear()
        self.steps += 1
        try:
            self._finite(watch, graph, root, place)
            now = perf_counter_ns()
            self.next_norm = now + SHARE * (now - start)
            if graph is not None:
                self._look_at_model(watch, graph)
                now = perf_counter_ns()
                self.next_all = now + SHARE * (self.cost + now - start)
        finally:
            now = perf_counter_ns()
            due = now >= self.next_all
            if self.every is not None:
                self.next_norm = 0
                due = self.steps % self.every == 0
            if due or self.steps < ALWAYS:
                self.arm()

    def _look_at_model(self, watch: Watch, graph: Graph) -> None:
        self._modes(watch)
        self._covered(watch, graph)

    def _modes(self, watch: Watch) -> None:
        """Find the models that were called and have some of the optimizer's parameters."""
        own = {id(p) for p in watch.parameters}
        watch.roots = [weakref.ref(m) for m in self.models() if shares(m, own)]
        for root in watch.roots:
            model = root()
            if model is not None and not model.training:
                self._in_eval(model)

    def _finite(self, watch: Watch, graph: Graph | None, root: Any, known: str) -> None:
        params = [p for p in watch.parameters if p.grad is not None]
        grads = [p.grad._values() if p.grad.is_sparse else p.grad for p in params]
        if not grads or isfinite(_C.ops._total_norm(grads, float("inf")).item()):
            return
        bad = [p for p, g in zip(params, grads, strict=True) if not g.isfinite().all()]
        if graph is None and root is not None:
            graph = Graph(_Root(root), self._model())  # type: ignore[arg-type]
        place = known or (region_of(graph, bad) if graph is not None else "")
        names = [name for p in bad if graph is not None for name in graph.module_index.names(p)[:1]]
        what = f" of {listed(names)}" if names else ""
        text = f"gradients{what} are not finite" + (f": {place}" if place else "")
        who = f"{watch.name}.step"
        self.report("not_finite", who, text, fix_for(place), names)


class _Root:
    """Stands for a loss whose node alone is known."""

    requires_grad = True

    def __init__(self, node: Any) -> None:
        self.grad_fn = node
