"""Schedules along cosines."""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, Any

from .base import LRScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


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
        self._warn_outside_step()
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The previous rate was the minimum: its distance, 0, has no information.
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
        self._warn_outside_step()
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
        self.last_epoch = int(epoch // 1)
        self._take(self.get_lr)
