"""Averages of a model's weights along training, and the schedule that goes with them.

>>> import taeda
>>> from taeda.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
>>> model = taeda.nn.Linear(2, 1)
>>> averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
>>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
>>> for _ in range(3):
...     model(taeda.ones(4, 2)).square().mean().backward()
...     optimizer.step()
...     averaged.update_parameters(model)
>>> averaged(taeda.ones(4, 2)).shape
taeda.Size([4, 1])
"""

from __future__ import annotations

import copy
import itertools
from math import cos, pi
from typing import TYPE_CHECKING, Any

import taeda
from taeda.nn import Module
from taeda.nn.modules.batchnorm import _BatchNorm

from .lr_scheduler import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taeda import Tensor

    from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(who: str, decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"{who}: decay must be in [0, 1], got {decay}")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """For ``AveragedModel(multi_avg_fn=...)``: an exponential moving average.

    Each update keeps ``decay`` of the average, from 0 to 1, or raises ``ValueError``.
    """
    _check_decay("get_ema_multi_avg_fn", decay)

    def ema_update(averages: list[Tensor], values: list[Tensor], count: Any) -> None:
        del count  # an exponential average does not depend on it
        with taeda.no_grad():
            for average, value in zip(averages, values, strict=True):
                _move(average, value, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """For ``AveragedModel(multi_avg_fn=...)``: the mean of all values, as it is by default."""

    def swa_update(averages: list[Tensor], values: list[Tensor], count: Any) -> None:
        with taeda.no_grad():
            for average, value in zip(averages, values, strict=True):
                _move(average, value, 1 / (float(count) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """For ``AveragedModel(avg_fn=...)``: an exponential moving average, tensor by tensor."""
    _check_decay("get_ema_avg_fn", decay)

    def ema_update(average: Tensor, value: Tensor, count: Any) -> Tensor:
        del count  # an exponential average does not depend on it
        with taeda.no_grad():
            return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """For ``AveragedModel(avg_fn=...)``: the mean of all values, tensor by tensor."""

    def swa_update(average: Tensor, value: Tensor, count: Any) -> Tensor:
        with taeda.no_grad():
            return average + (value - average) / (count + 1)

    return swa_update


def _move(average: Tensor, value: Tensor, share: float) -> None:
    """Move an average towards a value; integers, such as counts, are rounded down."""
    if average.is_floating_point() or average.is_complex():
        average.lerp_(value, share)
    else:
        average.copy_(average + (value - average) * share)


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of that model's along training.

    Izmailov, Podoprikhin, Garipov, Vetrov, Wilson: Averaging weights leads to wider optima and
    better generalization, UAI 2018; exponential averages as in Polyak, Juditsky: Acceleration of
    stochastic approximation by averaging, 1992.

    Args:
        model: the model, which is copied into ``.module``.
        device: where to keep the copy; where the model is if None.
        avg_fn: ``avg_fn(average, value, n_averaged)`` gives a parameter's new average.
        multi_avg_fn: ``multi_avg_fn(averages, values, n_averaged)`` changes all averages in place.
            Without either, the average is the mean of all values.
        use_buffers: average buffers too, instead of copying them at each update.

    Raises:
        AssertionError: both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Any, Any, Any], Any] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", taeda.tensor(0, dtype=taeda.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return [t.detach() for t in itertools.chain(model.parameters(), buffers)]

    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the averages; the first ones are copied."""
        averages = self._averaged(self.module)
        values = [
            value.to(average.device)
            for average, value in zip(averages, self._averaged(model), strict=True)
        ]
        count = self.n_averaged
        if count.item() == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, count.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, count)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch normalisation layers.

    For averaged weights, under which the layers have never seen data. The model runs once over
    ``loader`` in training mode, and keeps its mode and its layers' momenta.

    Args:
        loader: batches: tensors, or lists or tuples whose first item is the model's input.
        model: the model; nothing is done if it has no such layers.
        device: where to move the inputs; None leaves them.
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for layer in momenta:
        layer.reset_running_stats()
        layer.momentum = None  # the mean over all batches
    try:
        with taeda.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for layer, momentum in momenta.items():
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From the rate that is set to a constant one, in ``anneal_epochs`` epochs.

    Args:
        optimizer: whose rates to set.
        swa_lr: the constant rate, or a list with one for each group.
        anneal_epochs: how many epochs the way takes.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: an option is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                f"SWALR: swa_lr must have one value for each of the {len(groups)} param_groups, "
                f"got {len(rates)}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: anneal_epochs must be an integer of at least 0, got {anneal_epochs}"
            )
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The fraction of the schedule completed at a step, from 0 to 1."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - cos(pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - goal * before) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
