"""Schedules that multiply the rates by factors."""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .base import LRScheduler, as_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class _FunctionLR(LRScheduler):
    """A schedule by one function for each group."""

    _not_saved = ("optimizer", "lr_lambdas")

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(getattr(optimizer, "param_groups", [None]))
        self.lr_lambdas: list[Callable[[int], float]]
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(
                    f"{type(self).__name__}: Expected {groups} lr_lambdas, one for each group, "
                    f"but got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"{type(self).__name__}: lr_lambda should be a function, but got "
                    f"'{type(function).__name__}', which is not callable"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. Of callable objects, their attributes; of functions, None:
        they must be given again.
        """
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a ``state_dict``."""
        state = as_state(self, state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)
        super().load_state_dict(state)


class LambdaLR(_FunctionLR):
    """The initial rate times ``lr_lambda(epoch)``.

    Args:
        optimizer: whose rates to set.
        lr_lambda: a function of the epoch, or a list with one for each group.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: the list has not one function for each group.
    """

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        return [
            base * function(self.last_epoch)
            for base, function in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(_FunctionLR):
    """In each epoch but the first, the rate times ``lr_lambda(epoch)``.

    Args:
        optimizer: whose rates to set.
        lr_lambda: a function of the epoch, or a list with one for each group.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: the list has not one function for each group.
    """

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        groups = self.optimizer.param_groups
        return [
            group["lr"] * function(self.last_epoch)
            for group, function in zip(groups, self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """The rate times ``gamma``, every ``step_size`` epochs.

    Args:
        optimizer: whose rates to set.
        step_size: epochs between changes.
        gamma: the factor.
        last_epoch: the epoch after which to go on; -1 starts anew.
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        changes = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma) if changes else self._current()

    def _get_closed_form_lr(self) -> list[Any]:
        return [b * self.gamma ** (self.last_epoch // self.step_size) for b in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each milestone.

    Args:
        optimizer: whose rates to set.
        milestones: epochs; one that comes twice counts twice.
        gamma: the factor.
        last_epoch: the epoch after which to go on; -1 starts anew.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(milestones, Iterable):
            raise TypeError(
                f"MultiStepLR: milestones: '{type(milestones).__name__}' object is not iterable"
            )
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        times = self.milestones.get(self.last_epoch, 0)
        return self._scaled(self.gamma**times) if times else self._current()

    def _get_closed_form_lr(self) -> list[Any]:
        times = sum(n for at, n in self.milestones.items() if at <= self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times ``factor`` in the first ``total_iters`` epochs.

    Args:
        optimizer: whose rates to set.
        factor: from 0 to 1.
        total_iters: how many epochs.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: ``factor`` is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor should be between 0 and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch == self.total_iters:
            return self._scaled(1.0 / self.factor)
        return self._current()

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes on a line to ``end_factor`` in ``total_iters`` epochs.

    Args:
        optimizer: whose rates to set.
        start_factor: the factor in the first epoch, above 0 and up to 1.
        end_factor: the factor after ``total_iters`` epochs, from 0 to 1.
        total_iters: how many epochs.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: a factor is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor should be greater than 0 and at most 1, got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor should be between 0 and 1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` in each epoch.

    Args:
        optimizer: whose rates to set.
        gamma: the factor.
        last_epoch: the epoch after which to go on; -1 starts anew.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        return self._current() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate times ``(1 - epoch / total_iters) ** power``, which reaches 0.

    Args:
        optimizer: whose rates to set.
        total_iters: after how many epochs the rate is 0.
        power: 1 goes there on a line.
        last_epoch: the epoch after which to go on; -1 starts anew.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = (self.total_iters - self.last_epoch) / (self.total_iters - self.last_epoch + 1)
        return self._scaled(left**self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]
