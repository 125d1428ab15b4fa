"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from .base import LRScheduler, as_state, copied, set_option, unless_it_fails
from .plateau import ReduceLROnPlateau

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Several(LRScheduler):
    """Base of schedules composed of schedules."""

    _not_saved = ("optimizer", "_schedulers")
    _schedulers: list[Any]

    def _check(self, optimizer: Any, schedulers: Sequence[Any]) -> None:
        who = type(self).__name__
        if not schedulers:
            raise ValueError(f"{who}: expects at least one scheduler, but got none")
        for i, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler):
                raise TypeError(
                    f"{who}: expects schedulers, but the one at index {i} is "
                    f"{type(scheduler).__name__}"
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{who}: does not support ReduceLROnPlateau, whose step needs a metric; there "
                    f"is one at index {i}"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{who}: expects all schedulers to belong to the same optimizer, but "
                    f"{type(scheduler).__name__} at index {i} belongs to another"
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the schedulers' own states."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a ``state_dict``, including the schedulers' states."""
        state = as_state(self, state_dict)
        states = state.pop("_schedulers")
        if len(states) != len(self._schedulers):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected the states of "
                f"{len(self._schedulers)} schedulers, got {len(states)}"
            )
        with unless_it_fails(self, *self._schedulers):
            for scheduler, own in zip(self._schedulers, states, strict=True):
                scheduler.load_state_dict(own)
            super().load_state_dict(state)


class SequentialLR(_Several):
    """One schedule after the other; each starts from its epoch 0 at its milestone.

    Args:
        optimizer: whose rates to set.
        schedulers: the schedules, in order.
        milestones: the epochs at which the second and later ones take over.
        last_epoch: the epoch after which to go on; -1 starts anew.

    Raises:
        ValueError: there is not one milestone less than there are schedulers, they belong to
            different optimizers, or one follows a metric.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR: expects one milestone less than there are schedulers, got "
                f"{len(milestones)} milestones and {len(schedulers)} schedulers"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Making the schedulers has made each take its first step; only the first one's counts.
        for group in optimizer.param_groups:
            set_option(group, "lr", copied(group["initial_lr"]))
        for scheduler in schedulers:
            scheduler._undo_step()
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch, and set its rates."""
        epoch = self.last_epoch + 1
        which = bisect_right(self._milestones, epoch)
        scheduler = self._schedulers[which]
        if which > 0 and self._milestones[which - 1] == epoch:
            scheduler._start()
        else:
            scheduler.step()
        self.last_epoch = epoch
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedules at once: each step takes a step of each, in order.

    Args:
        schedulers: the schedules.
        optimizer: theirs; that of the first one where it is None.

    Raises:
        ValueError: there are none, they belong to different optimizers, or one follows a metric.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if optimizer is None and schedulers:
            optimizer = schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer  # type: ignore[assignment]
        self._last_lr = self._current()

    # What a SequentialLR asks of the schedules it is made of.
    def _undo_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._undo_step()

    def _start(self) -> None:
        for group in self.optimizer.param_groups:
            set_option(group, "lr", copied(group["initial_lr"]))
        for scheduler in self._schedulers:
            scheduler.last_epoch = -1
            scheduler._initial_step()
        self._last_lr = self._current()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch in every schedule."""
        with unless_it_fails(*self._schedulers):
            for scheduler in self._schedulers:
                scheduler.step()
        self._last_lr = self._current()
