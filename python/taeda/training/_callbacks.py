"""What a ``Trainer`` does besides stepping: callbacks, each of which keeps to one thing."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import taeda

if TYPE_CHECKING:
    from taeda.amp import GradScaler
    from taeda.optim.swa_utils import AveragedModel
    from taeda.training._trainer import Step, Trainer

__all__ = [
    "Accumulate",
    "Average",
    "Callback",
    "Checkpoint",
    "Clip",
    "EarlyStopping",
    "MixedPrecision",
    "Progress",
    "Schedule",
]


class Callback:
    """Base of what takes part in a training: a subclass redefines what it needs.

    Attributes:
        order: callbacks are called in this order, those of equal order as they were given.

    Whatever it remembers between batches belongs into ``state_dict``, so that a training that was
    interrupted goes on as if it had not been.
    """

    order = 0

    def attach(self, trainer: Trainer) -> None:
        """A trainer was made with this callback."""

    def fit_start(self, trainer: Trainer) -> None:
        """``fit`` begins."""

    def epoch_start(self, trainer: Trainer, loader: Any) -> None:
        """A pass through the data begins, or goes on after a resume."""

    def forward(self, trainer: Trainer) -> AbstractContextManager[Any]:
        """A context in which the model and the loss are computed."""
        return contextlib.nullcontext()

    def before_update(self, trainer: Trainer) -> None:
        """The gradients are complete, and the optimizer is about to step by them."""

    def after_update(self, trainer: Trainer) -> None:
        """The optimizer has stepped."""

    def after_step(self, trainer: Trainer, step: Step) -> None:
        """A batch is done, with or without an update."""

    def epoch_end(self, trainer: Trainer, log: dict[str, Any]) -> None:
        """A pass and its validation are done; ``log`` is its entry of the history."""

    def fit_end(self, trainer: Trainer) -> None:
        """``fit`` has come to its end."""

    def close(self, trainer: Trainer) -> None:
        """``fit`` returns, or has failed: let go of what was opened."""

    def state_dict(self) -> dict[str, Any]:
        """What there is to remember."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""


def monitored(who: str, name: str, log: dict[str, Any]) -> float:
    """A value of an epoch's log."""
    if name not in log:
        raise KeyError(f"{who}: nothing is called {name!r} in the log of an epoch: {list(log)}")
    return float(log[name])


def is_better(value: float, best: float | None, mode: str, least: float = 0.0) -> bool:
    """Whether a value is better than the best so far, by more than ``least``; NaN never is."""
    if math.isnan(value):
        return False
    if best is None:
        return True
    return value < best - least if mode == "min" else value > best + least


def check_mode(who: str, mode: str) -> None:
    """Raise unless ``mode`` is known."""
    if mode not in ("min", "max"):
        raise ValueError(f"{who}: mode must be 'min' or 'max', got {mode!r}")


class Accumulate(Callback):
    """Step the optimizer once for several batches, by the mean of their gradients.

    Args:
        batches: how many. Where an epoch ends before, it is stepped by those that there are.
    """

    def __init__(self, batches: int) -> None:
        if not isinstance(batches, int) or batches < 1:
            raise ValueError(f"Accumulate: batches must be a positive integer, got {batches!r}")
        self.batches = batches

    def attach(self, trainer: Trainer) -> None:
        trainer.accumulate = self.batches


class Clip(Callback):
    """Limit the gradients before each step.

    Args:
        norm: the largest norm of all gradients together.
        value: the largest magnitude of an element.
        norm_type: which norm.

    Raises:
        ValueError: neither limit is given, or both.
    """

    def __init__(
        self, norm: float | None = None, value: float | None = None, norm_type: float = 2.0
    ) -> None:
        if (norm is None) == (value is None):
            raise ValueError("Clip: give either norm or value")
        self.norm, self.value, self.norm_type = norm, value, norm_type

    def before_update(self, trainer: Trainer) -> None:
        from taeda.nn import utils

        if self.norm is not None:
            utils.clip_grad_norm_(trainer.model.parameters(), self.norm, self.norm_type)
        elif self.value is not None:
            utils.clip_grad_value_(trainer.model.parameters(), self.value)


class Schedule(Callback):
    """Step a learning rate schedule.

    Args:
        scheduler: of ``taeda.optim.lr_scheduler``, made of the trainer's optimizer; or a function
            that makes it of the optimizer.
        every: after each ``"epoch"`` or each ``"update"`` of the optimizer.
        monitor: the value of an epoch's log to give to it, as ReduceLROnPlateau wants.

    Raises:
        ValueError: the options contradict each other, or the schedule is of another optimizer.
    """

    def __init__(self, scheduler: Any, every: str = "epoch", monitor: str | None = None) -> None:
        if every not in ("epoch", "update"):
            raise ValueError(f"Schedule: every must be 'epoch' or 'update', got {every!r}")
        if every == "update" and monitor is not None:
            raise ValueError("Schedule: a monitored value is there after an epoch, not an update")
        self.scheduler, self.every, self.monitor = scheduler, every, monitor

    def attach(self, trainer: Trainer) -> None:
        if not hasattr(self.scheduler, "step") or isinstance(self.scheduler, type):
            self.scheduler = self.scheduler(trainer.optimizer)
        metric = inspect.signature(self.scheduler.step).parameters.get("metrics")
        if self.monitor is None and metric is not None:
            raise ValueError(
                f"Schedule: {type(self.scheduler).__name__} goes by a value; name it, as by "
                'monitor="validation loss"'
            )
        if getattr(self.scheduler, "optimizer", trainer.optimizer) is not trainer.optimizer:
            raise ValueError("Schedule: the schedule is of another optimizer than the trainer's")

    def after_update(self, trainer: Trainer) -> None:
        if self.every == "update":
            self.scheduler.step()

    def epoch_end(self, trainer: Trainer, log: dict[str, Any]) -> None:
        if self.every == "epoch":
            given = [] if self.monitor is None else [monitored("Schedule", self.monitor, log)]
            self.scheduler.step(*given)

    def state_dict(self) -> dict[str, Any]:
        return self.scheduler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scheduler.load_state_dict(state)


class MixedPrecision(Callback):
    """Run the model in lower precision, by ``taeda.autocast``, in training and evaluation.

    Args:
        dtype: bfloat16, or float16, for which losses are scaled.
        scaler: what scales them; a new ``GradScaler("cpu")`` by default.
    """

    def __init__(
        self, dtype: taeda.dtype = taeda.bfloat16, scaler: GradScaler | None = None
    ) -> None:
        if dtype not in (taeda.bfloat16, taeda.float16):
            raise ValueError(f"MixedPrecision: dtype must be bfloat16 or float16, got {dtype}")
        if scaler is None and dtype is taeda.float16:
            scaler = taeda.amp.GradScaler("cpu")
        self.dtype, self.scaler = dtype, scaler

    def attach(self, trainer: Trainer) -> None:
        trainer.scaler = self.scaler

    def forward(self, trainer: Trainer) -> AbstractContextManager[Any]:
        there = any(parameter.is_cuda for parameter in trainer.model.parameters())
        return taeda.autocast("cuda" if there else "cpu", self.dtype)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.scaler is None else self.scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.scaler is not None:
            self.scaler.load_state_dict(state)


class Average(Callback):
    """Keep an exponential moving average of the model's weights, updated after each step.

    Args:
        decay: the share of the average that an update keeps.

    Attributes:
        model: the averaged model, once a trainer is made; ``trainer.evaluate(..., model=it)``.
    """

    model: AveragedModel

    def __init__(self, decay: float = 0.999) -> None:
        from taeda.optim.swa_utils import get_ema_multi_avg_fn

        self._average = get_ema_multi_avg_fn(decay)

    def attach(self, trainer: Trainer) -> None:
        from taeda.optim.swa_utils import AveragedModel

        self.model = AveragedModel(trainer.model, multi_avg_fn=self._average)

    def after_update(self, trainer: Trainer) -> None:
        self.model.update_parameters(trainer.model)

    def state_dict(self) -> dict[str, Any]:
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state)


class EarlyStopping(Callback):
    """End the training when a value has not become better for some epochs.

    Args:
        monitor: the value of an epoch's log.
        patience: for how many epochs in a row.
        least: by how much a better value must differ from the best so far.
        mode: ``"min"`` or ``"max"``: what is better.
        restore: put the weights of the best epoch back at the end.
    """

    def __init__(
        self,
        monitor: str = "validation loss",
        patience: int = 5,
        least: float = 0.0,
        mode: str = "min",
        restore: bool = False,
    ) -> None:
        check_mode("EarlyStopping", mode)
        self.monitor, self.patience, self.least, self.mode = monitor, patience, least, mode
        self.restore = restore
        self.best: float | None = None
        self.waited = 0
        self._weights: dict[str, Any] | None = None

    def epoch_end(self, trainer: Trainer, log: dict[str, Any]) -> None:
        value = monitored("EarlyStopping", self.monitor, log)
        if is_better(value, self.best, self.mode, self.least):
            self.best, self.waited = value, 0
            if self.restore:
                state = trainer.model.state_dict()
                self._weights = {name: tensor.clone() for name, tensor in state.items()}
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop = True

    def fit_end(self, trainer: Trainer) -> None:
        if self._weights is not None:
            trainer.model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited, "weights": self._weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.waited = state["best"], state["waited"]
        self._weights = state["weights"]


class Checkpoint(Callback):
    """Save the trainer, for ``Trainer.resume``.

    Args:
        path: where to. A file is replaced in one step, so that there is always a whole one.
        batches: save after every so many batches; None saves after each epoch.
        best: save only after epochs that are the best so far by this value of their log.
        mode: ``"min"`` or ``"max"``: what is better.

    Raises:
        ValueError: both ``batches`` and ``best`` are given.
    """

    order = 100  # after all whose state it saves

    def __init__(
        self,
        path: str | os.PathLike[str],
        batches: int | None = None,
        best: str | None = None,
        mode: str = "min",
    ) -> None:
        check_mode("Checkpoint", mode)
        if batches is not None and best is not None:
            raise ValueError("Checkpoint: what is best is known after an epoch, not some batches")
        if batches is not None and (not isinstance(batches, int) or batches < 1):
            raise ValueError(f"Checkpoint: batches must be a positive integer, got {batches!r}")
        self.path, self.batches, self.best, self.mode = path, batches, best, mode
        self.best_value: float | None = None

    def after_step(self, trainer: Trainer, step: Step) -> None:
        if self.batches is not None and trainer.batch and trainer.batch % self.batches == 0:
            trainer.save(self.path)

    def epoch_end(self, trainer: Trainer, log: dict[str, Any]) -> None:
        if self.best is not None:
            value = monitored("Checkpoint", self.best, log)
            if not is_better(value, self.best_value, self.mode):
                return
            self.best_value = value
        trainer.save(self.path)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.best is None else {"best_value": self.best_value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best_value = state["best_value"]


class Progress(Callback):
    """Show a progress bar for each epoch, with tqdm, which ``pip install taeda[progress]`` has.

    Raises:
        ImportError: tqdm is not installed.
    """

    order = 50

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError(
                "Progress: the bar is tqdm's, which is not installed: pip install taeda[progress]"
            ) from error
        self._tqdm: Any = tqdm
        self._bar: Any = None

    def epoch_start(self, trainer: Trainer, loader: Any) -> None:
        total = len(loader) if hasattr(loader, "__len__") else None
        label = f"epoch {trainer.epoch + 1}"
        self._bar = self._tqdm(total=total, initial=trainer.batch, desc=label)

    def after_step(self, trainer: Trainer, step: Step) -> None:
        if self._bar is not None:
            self._bar.update()
            self._bar.set_postfix(loss=f"{step.loss:.4g}", refresh=False)

    def epoch_end(self, trainer: Trainer, log: dict[str, Any]) -> None:
        values = {name: f"{value:.4g}" for name, value in log.items() if name != "epoch"}
        self._bar.set_postfix(values)
        self.close(trainer)

    def close(self, trainer: Trainer) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
