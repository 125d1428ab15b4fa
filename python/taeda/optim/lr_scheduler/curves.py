"""Schedules along curves: cosines and the one-cycle policy."""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, Any

from .base import LRScheduler, check_optimizer, set_option

if TYPE_CHECKING:
    from ..optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR"]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to ``eta_min`` in ``T_max`` epochs, and back.

    Loshchilov, Hutter: SGDR: Stochastic gradient descent with warm restarts, ICLR 2017, without
    the restarts.

    Args:
        optimizer: whose rates to set.
        T_max: epochs of one way.
        eta_min: the lowest rate.
        last_epoch: the epoch after which to go on; -1 starts anew.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return (1 + cos(pi * epoch / self.T_max)) / 2

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate before this one was the lowest, whose distance from it, 0, tells nothing.
            rise = self._height(self.T_max - 1)
            return [
                group["lr"] + (base - low) * rise
                for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True)
            ]
        ratio = self._height(epoch) / self._height(epoch - 1)
        return [low + ratio * (group["lr"] - low) for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate down to ``eta_min``, again and again.

    Loshchilov, Hutter: SGDR: Stochastic gradient descent with warm restarts, ICLR 2017.

    Args:
        optimizer: whose rates to set.
        T_0: epochs of the first cycle.
        T_mult: each cycle is so many times as long as the one before.
        eta_min: the lowest rate.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is not an integer of at least 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: {name} should be an integer of at least 1, got "
                    f"{value!r}"
                )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        height = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by an epoch, or to ``epoch``, which may be a fraction: one step for each batch."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: epoch should not be negative, got {epoch}"
            )
        else:
            start, length = 0, self.T_0
            if self.T_mult == 1:
                start = int(epoch // length) * length
            else:
                while epoch >= start + length:
                    start += length
                    length *= self.T_mult
            self.T_cur, self.T_i = epoch - start, length
        self._step_count += 1
        self.last_epoch = int(epoch // 1)
        self._set_rates(self.get_lr())


class OneCycleLR(LRScheduler):
    """Up to ``max_lr``, then down far below the start, in one cycle of ``total_steps`` batches.

    Smith, Topin: Super-convergence: Very fast training of neural networks using large learning
    rates, 2018. Momentum goes the other way. Step it after every batch.

    Args:
        optimizer: whose rates to set.
        max_lr: the highest rate, or a list with one for each group.
        total_steps: steps in the cycle; or give ``epochs`` and ``steps_per_epoch``.
        epochs: number of epochs.
        steps_per_epoch: batches in each.
        pct_start: share of the steps that go up.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: change ``momentum`` (or the first of ``betas``), which the optimizer must
            have.
        base_momentum: the lowest momentum, at the highest rate.
        max_momentum: the highest momentum.
        div_factor: the first rate is ``max_lr / div_factor``.
        final_div_factor: the last one is the first one over this.
        three_phase: down to the first rate as fast as up, and only then to the last one.
        last_epoch: the step after which to go on; -1 starts anew.

    Raises:
        ValueError: an option is out of its range, or the optimizer has no momentum to change.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("OneCycleLR", optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: give either total_steps, or both epochs and steps_per_epoch"
                )
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(
                f"OneCycleLR: Expected a positive number of total_steps, but got {total_steps}"
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start should be between 0 and 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', got "
                f"{anneal_strategy!r}"
            )
        self.optimizer = optimizer
        self.total_steps = total_steps
        self._schedule_phases = _phases(total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        groups = optimizer.param_groups
        tops = _one_each(groups, max_lr, "max_lr")
        if last_epoch == -1:
            for group, top in zip(groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            defaults = optimizer.defaults
            if "momentum" not in defaults and "betas" not in defaults:
                raise ValueError(
                    f"OneCycleLR: {type(optimizer).__name__} has no momentum or beta1, which "
                    "cycle_momentum=True would change"
                )
            self.use_beta1 = "betas" in defaults
            if last_epoch == -1:
                lows = _one_each(groups, base_momentum, "base_momentum")
                highs = _one_each(groups, max_momentum, "max_momentum")
                for group, low, high in zip(groups, lows, highs, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            set_option(group, "momentum", value)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + cos(pi * share))

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start, last = 0.0, self._schedule_phases[-1]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is last:
                break
            start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, share))
        return rates


def _one_each(groups: list[Any], value: Any, name: str) -> list[Any]:
    """One value for each group: those given, or the same for all."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"OneCycleLR: expected {len(groups)} values for {name}, got {len(value)}")
    return list(value)


def _phases(total_steps: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """The phases of the cycle: where each ends, and between which options of a group it goes."""
    if three_phase:
        ends = [pct_start * total_steps - 1, 2 * pct_start * total_steps - 2, total_steps - 1]
        rates = ["initial_lr", "max_lr", "initial_lr", "min_lr"]
        momenta = ["max_momentum", "base_momentum", "max_momentum", "max_momentum"]
    else:
        ends = [pct_start * total_steps - 1, total_steps - 1]
        rates = ["initial_lr", "max_lr", "min_lr"]
        momenta = ["max_momentum", "base_momentum", "max_momentum"]
    return [
        {
            "end_step": end,
            "start_lr": rates[i],
            "end_lr": rates[i + 1],
            "start_momentum": momenta[i],
            "end_momentum": momenta[i + 1],
        }
        for i, end in enumerate(ends)
    ]
