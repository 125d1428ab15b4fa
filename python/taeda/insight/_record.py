"""`record`: what each step of a training loop did."""

from __future__ import annotations

import csv
import functools
import itertools
import os
import re
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C
from taeda.amp import grad_scaler

from . import _hooks
from ._checks import leaves_of, size_of
from ._explain import check_arguments
from ._graph import Graph, Op
from ._table import number, percent

if TYPE_CHECKING:
    from typing_extensions import Self

    from taeda import Tensor
    from taeda.nn import Module
    from taeda.optim import Optimizer

ALWAYS = 3  # steps at the beginning that are measured in full
SHARE = 250  # full measurements take one part in so many of the time

_RECTIFYING = {"relu", "relu6", "threshold"}
_BY_CHANNEL = re.compile("conv|add$|(batch|group|instance)_norm$")


class record:
    """Keep what each step of a training loop does: ``with taeda.record(model, optimizer) as run:``.

    Losses and times of all steps are kept. The norms of gradients, the sizes of updates, and the
    share of dead units are measured in the first three steps, and then as often as takes about
    1 % of the time.

    Args:
        model: the module that is trained.
        optimizer: what trains it.
        every: measure all in each ``every``-th step, however long it takes.

    Attributes:
        losses: for each step, the sum of what ``backward()`` was called on for it, since the
            gradients were cleared, without the factor of a GradScaler; None where that was no
            single number.
        grad_norms: by the step's number, the norm of all gradients together.
        gradients: by parameter and step, the norm of its gradient.
        ratios: by parameter and step, the norm of its update, relative to its own.
        dead: by activation and step, the share of units that were zero for the whole batch.

    Raises:
        TypeError: an argument is not what it should be.
        ValueError: ``every`` is less than 1.

    >>> model = taeda.nn.Linear(2, 1)
    >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    >>> with taeda.record(model, optimizer) as run:
    ...     for _ in range(5):
    ...         loss = model(taeda.ones(3, 2)).square().mean()
    ...         optimizer.zero_grad()
    ...         loss.backward()
    ...         optimizer.step()
    >>> len(run.losses), run.losses[0] > run.losses[-1], sorted(run.ratios)
    (5, True, ['bias', 'weight'])
    """

    def __init__(self, model: Module, optimizer: Optimizer, *, every: int | None = None) -> None:
        check_arguments("record", taeda.empty(()), model, None)
        if not isinstance(optimizer, taeda.optim.Optimizer):
            raise TypeError(
                f"record(): optimizer must be an Optimizer, got {type(optimizer).__name__}; of "
                "several, each has a record of its own"
            )
        if every is not None and every < 1:
            raise ValueError(f"record(): every must be at least 1, got {every}")
        self.model, self.optimizer, self.every = model, optimizer, every
        self.grad_norms: dict[int, float] = {}
        self.gradients: dict[str, dict[int, float]] = {}
        self.ratios: dict[str, dict[int, float]] = {}
        self.dead: dict[str, dict[int, float]] = {}
        self._log = _C._StepLog()
        self._losses: list[float | None] = []  # what has been taken from the log
        self._ends: list[int] = []
        self._full = False  # whether this step is measured in full
        self._cost = 0  # of measuring it, in ns
        self._before: list[tuple[str, Any, Tensor]] = []

    def __enter__(self) -> Self:
        self._names = {id(p): name for name, p in self.model.named_parameters()}
        self._around = self._watching()
        _hooks.surround(self.optimizer, self._around)
        self._measure_in_full(True)
        self._log.start(min(leaves_of(self.optimizer), key=size_of))
        self._scaled = self._log.scaled
        grad_scaler.on_scaled.append(self._scaled)
        return self

    def __exit__(self, *exc_info: object) -> None:
        grad_scaler.on_scaled.remove(self._scaled)
        self._log.stop()
        self._measure_in_full(False)
        _hooks.release(self.optimizer, self._around)

    # ---- listening ------------------------------------------------------------------------------

    def _measure_in_full(self, full: bool) -> None:
        """Measure the next step in full, and listen to backward passes for it, or not."""
        if full != self._full:
            (_hooks.listen if full else _hooks.leave)(self)
        self._full = full
        self._cost = 0

    def _watching(self) -> _hooks.Around:
        """What runs in each step: closures, which are quicker than methods."""
        end_of_step = self._log.step
        full, following = True, 0  # whether this step is measured in full; when to ask again

        def quick(step: Callable[..., Any]) -> Callable[..., Any]:
            def recorded(closure: Any = None) -> Any:
                nonlocal full, following
                if full:
                    self._measure_before()
                    result = step() if closure is None else step(closure)
                    self._measure_after()
                else:
                    result = step() if closure is None else step(closure)
                if end_of_step(following):
                    full, following = self._next_full()
                return result

            return recorded

        def around(step: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(step)
            def of_any_kind(*args: Any, **kwargs: Any) -> Any:
                return quick(functools.partial(step, *args, **kwargs))()

            if _hooks.takes_closure_alone(step):
                return functools.wraps(step)(quick(step))
            return of_any_kind

        return around

    def _next_full(self) -> tuple[bool, int]:
        """Whether the next step is measured in full, and when, by the clock, to ask again."""
        steps, following = len(self.losses), 0
        if self.every is not None:
            full = not steps % self.every
        else:
            full = not self._full or steps < ALWAYS
            if not full:
                following = self._ends[-1] + SHARE * self._cost
        self._measure_in_full(full)
        return full, following

    passes = None  # each backward pass that it listens to needs Python

    def before_backward(self, loss: Any, plain: bool) -> None:
        """Look at the units of a step that is measured in full."""
        start = perf_counter_ns()
        self._look_at_units(loss)
        self._cost += perf_counter_ns() - start

    # ---- measuring ------------------------------------------------------------------------------

    def _measure_before(self) -> None:
        start, step = perf_counter_ns(), len(self.losses)
        total = 0.0
        self._before = []
        for i, p in enumerate(leaves_of(self.optimizer)):
            if p.grad is None:
                continue
            name = self._names.get(id(p), f"number {i} of the optimizer")
            norm = float(p.grad.norm())
            total += norm * norm
            self.gradients.setdefault(name, {})[step] = norm
            self._before.append((name, p, p.detach().clone()))
        self.grad_norms[step] = total**0.5
        self._cost += perf_counter_ns() - start

    def _measure_after(self) -> None:
        start, step = perf_counter_ns(), len(self.losses)
        for name, p, before in self._before:
            size = float(before.norm())
            change = float((p.detach() - before).norm())
            self.ratios.setdefault(name, {})[step] = change / size if size else float("inf")
        self._before = []
        self._cost += perf_counter_ns() - start

    def _look_at_units(self, loss: Any) -> None:
        step = len(self.losses)
        graph = Graph(loss, self.model)
        seen: dict[str, int] = {}
        for key in reversed(graph.order):
            op = graph.ops[key]
            if op.leaf is not None or op.name not in _RECTIFYING:
                continue
            share = _dead_share(graph, op)
            if share is None:
                continue
            name = op.module if op.module and op.name in _class_of(graph, op) else None
            name = name or (f"{op.module}.{op.name}" if op.module else op.name)
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name = f"{name} ({seen[name]})"
            self.dead.setdefault(name, {})[step] = share

    # ---- what was kept --------------------------------------------------------------------------

    @property
    def losses(self) -> list[float | None]:
        """For each step, the sum of the losses, or None."""
        losses, ends = self._log.take()
        self._losses += losses
        self._ends += ends
        return self._losses

    @property
    def times(self) -> list[float]:
        """How long each step took, in seconds, from the end of the one before."""
        assert self.losses is self._losses  # all of them have been taken from the log
        return [(stop - start) * 1e-9 for start, stop in itertools.pairwise(self._ends)]

    def rows(self) -> list[dict[str, float | None]]:
        """One dict for each step, with the columns of `to_csv`."""
        rows = []
        for step, (loss, time) in enumerate(zip(self.losses, self.times, strict=True)):
            row: dict[str, float | None] = {"step": step, "loss": loss, "seconds": time}
            row["grad_norm"] = self.grad_norms.get(step)
            for kind, series in (
                ("gradient", self.gradients),
                ("ratio", self.ratios),
                ("dead", self.dead),
            ):
                for name, values in series.items():
                    row[f"{kind}/{name}"] = values.get(step)
            rows.append(row)
        return rows

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a file with one line for each step; what was not measured is empty."""
        rows = self.rows()
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]) if rows else ["step", "loss", "seconds"])
            writer.writeheader()
            writer.writerows(rows)

    def to_tensorboard(self, log_dir: str | os.PathLike[str] | None = None) -> None:
        """Write what was kept for TensorBoard, which must be installed.

        Args:
            log_dir: a folder; ``runs/`` and the time by default.

        Raises:
            ModuleNotFoundError: TensorBoard is not installed.
        """
        from taeda.utils.tensorboard import SummaryWriter

        with SummaryWriter(log_dir) as writer:
            for step, row in enumerate(self.rows()):
                for name, value in row.items():
                    if value is not None and name != "step":
                        writer.add_scalar(name, value, step)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw losses, gradients, updates and dead units with matplotlib.

        Args:
            path: a file to save the picture to.

        Returns:
            matplotlib's figure.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
        """
        from ._plot import plot

        figure = plot(self)
        if path is not None:
            figure.savefig(path, dpi=110)
        return figure

    def __repr__(self) -> str:
        if not self.losses:
            return "<record: no steps>"
        known = [loss for loss in self.losses if loss is not None]
        mean = sum(self.times) / len(self.losses)
        text = f"<record: {len(self.losses)} steps of {number(1e3 * mean)} ms"
        if known:
            text += f", loss {number(known[0])} to {number(known[-1])}"
        if self.grad_norms:
            text += f", gradient norm {number(list(self.grad_norms.values())[-1])}"
        last = [list(values.values())[-1] for values in self.ratios.values()]
        if last:
            text += f", updates {percent(min(last))} to {percent(max(last))} of the weights"
        dead = [list(values.values())[-1] for values in self.dead.values()]
        if dead:
            text += f", dead units {percent(max(dead))} at most"
        return text + ">"

    def _repr_html_(self) -> str:
        from taeda._display import record_html

        return record_html(self)


def _class_of(graph: Graph, op: Op) -> str:
    return type(graph.module_index.modules.get(op.module or "")).__name__.lower()


def _dead_share(graph: Graph, op: Op) -> float | None:
    """The share of units, or of channels, that are nowhere positive."""
    values = op.saved("result")
    if values is None:
        values = op.saved("self")
    if values is None or values.dim() < 2 or not values.numel():
        return None
    maker = graph.source(op)
    by_channel = values.dim() > 2 and maker is not None and bool(_BY_CHANNEL.match(maker.name))
    dim = 1 if by_channel and (values.dim() > 3 or maker.name != "add") else -1  # type: ignore[union-attr]
    rest = [d for d in range(values.dim()) if d != dim % values.dim()]
    alive = (values.detach() > 0).any(dim=rest) if rest else values > 0
    return 1.0 - float(alive.float().mean())
