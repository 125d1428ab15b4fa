"""Schedules in which the rate goes up and down and momentum the other way."""

from __future__ import annotations

import types
from math import cos, floor, pi
from typing import TYPE_CHECKING, Any

from .base import LRScheduler, as_state, check_optimizer, set_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


def _one_each(groups: list[Any], value: Any, name: str) -> list[Any]:
    """One value for each group: those given, or the same for all."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have one value for each of the {len(groups)} param_groups, "
            f"got {len(value)}"
        )
    return list(value)


class _MomentumCycle(LRScheduler):
    """Changes the groups' momentum, or their first beta."""

    use_beta1: bool

    def _check_momentum(self, optimizer: Optimizer) -> None:
        defaults = optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                f"{type(self).__name__}: {type(optimizer).__name__} has no momentum or beta1, "
                "which cycle_momentum=True would change"
            )
        self.use_beta1 = "betas" in defaults

    def _start_momentum(self, groups: list[Any], lows: list[Any], highs: list[Any]) -> None:
        for group, low, high in zip(groups, lows, highs, strict=True):
            self._set_momentum(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            set_option(group, "momentum", value)


class CyclicLR(_MomentumCycle):
    """Up and down on straight lines between two rates, again and again.

    Smith: Cyclical learning rates for training neural networks, WACV 2017. Momentum goes the other
    way. Step it after every batch.

    Args:
        optimizer: whose rates to set.
        base_lr: the lower rate, where cycles start, or a list with one for each group.
        max_lr: the upper rate, or a list with one for each group.
        step_size_up: steps from the lower to the upper rate.
        step_size_down: steps back; as many as up if None.
        mode: how the height of cycles changes: ``"triangular"`` not; ``"triangular2"`` halves it
            with each cycle; ``"exp_range"`` times ``gamma`` with each step. Not used where
            ``scale_fn`` is given.
        gamma: see ``mode``.
        scale_fn: the height's factor, a function of ...
        scale_mode: ... the ``"cycle"``, from 1, or of the ``"iterations"`` so far.
        cycle_momentum: change ``momentum`` (or the first of ``betas``), which the optimizer must
            have.
        base_momentum: the lowest momentum, at the upper rate.
        max_momentum: the highest momentum, at the lower rate.
        last_epoch: the step after which to go on; -1 starts anew.

    Raises:
        ValueError: ``mode`` is unknown, a list has not one value for each group, or the optimizer
            has no momentum to change.

    >>> optimizer = taeda.optim.SGD([taeda.nn.Parameter(taeda.ones(1))], lr=1.0, momentum=0.9)
    >>> scheduler = taeda.optim.lr_scheduler.CyclicLR(optimizer, 1.0, 3.0, step_size_up=2)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [2.0]
    [3.0]
    [2.0]
    [1.0]
    """

    _not_saved = ("optimizer", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("CyclicLR", optimizer)
        self.optimizer = optimizer
        groups = optimizer.param_groups
        lows = _one_each(groups, base_lr, "CyclicLR: base_lr")
        self.max_lrs = _one_each(groups, max_lr, "CyclicLR: max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                "CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range' where there is "
                f"no scale_fn, got {mode!r}"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = _one_each(groups, base_momentum, "CyclicLR: base_momentum")
            self.max_momentums = _one_each(groups, max_momentum, "CyclicLR: max_momentum")
        if last_epoch == -1:
            for group, low in zip(groups, lows, strict=True):
                set_option(group, "lr", low)
            if cycle_momentum:
                self._start_momentum(groups, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The factor of the height in cycle, or after so many steps, ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        position = 1.0 + self.last_epoch / self.total_size
        cycle = floor(position)
        x = position - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, ends, strict=True):
                self._set_momentum(group, high - (high - low) * height * factor)
        return [
            low + (high - low) * height * factor
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. Of a callable object for ``scale_fn``, its attributes; of a
        function, None: it must be given again.
        """
        state = super().state_dict()
        custom = self._scale_fn_custom
        is_object = custom is not None and not isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = dict(custom.__dict__) if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        state = as_state(self, state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(state)


class OneCycleLR(_MomentumCycle):
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
            _check_positive(epochs=epochs, steps_per_epoch=steps_per_epoch)
            total_steps = epochs * steps_per_epoch
        _check_positive(total_steps=total_steps)
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
        tops = _one_each(groups, max_lr, "OneCycleLR: max_lr")
        if last_epoch == -1:
            for group, top in zip(groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._check_momentum(optimizer)
            if last_epoch == -1:
                lows = _one_each(groups, base_momentum, "OneCycleLR: base_momentum")
                highs = _one_each(groups, max_momentum, "OneCycleLR: max_momentum")
                self._start_momentum(groups, lows, highs)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + cos(pi * share))

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
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


def _check_positive(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"OneCycleLR: Expected positive integer {name}, but got {value}")
