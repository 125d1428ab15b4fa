"""The base of learning rate schedules."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import taeda

from ..optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LRScheduler"]


def copied(rate: Any) -> Any:
    """A copy of a rate, unaffected by later in-place changes."""
    return rate.clone() if isinstance(rate, taeda.Tensor) else rate


def set_option(group: dict[str, Any], option: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor keeps its identity."""
    current = group[option]
    if isinstance(current, taeda.Tensor):
        current.fill_(value.item() if isinstance(value, taeda.Tensor) else value)
    else:
        group[option] = value


def check_optimizer(who: str, optimizer: Any) -> None:
    """Raise unless ``optimizer`` is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{who}: expected an Optimizer, got {type(optimizer).__name__}")


@contextlib.contextmanager
def unless_it_fails(*schedulers: LRScheduler) -> Iterator[None]:
    """Take back what schedulers of one optimizer, and its rates, become within, if that fails."""
    groups = schedulers[0].optimizer.param_groups
    attributes = [dict(scheduler.__dict__) for scheduler in schedulers]
    rates = [copied(group["lr"]) for group in groups]
    try:
        yield
    except BaseException:
        for scheduler, before in zip(schedulers, attributes, strict=True):
            scheduler.__dict__.clear()
            scheduler.__dict__.update(before)
        for group, rate in zip(groups, rates, strict=True):
            set_option(group, "lr", rate)
        raise


def as_state(scheduler: LRScheduler, state_dict: Any) -> dict[str, Any]:
    """A copy of what a scheduler is to load; raises TypeError unless that is a dict."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"{type(scheduler).__name__}.load_state_dict: state_dict must be a dict, got "
            f"{type(state_dict).__name__}"
        )
    return dict(state_dict)


class LRScheduler:
    """Sets the learning rates of an optimizer's groups, as a function of the epoch.

    A subclass gives ``get_lr``, which returns the rates for ``self.last_epoch``, one for each
    group; and, where the rates can be computed without the ones before, ``_get_closed_form_lr``.

    Args:
        optimizer: whose rates to set.
        last_epoch: -1 starts anew, from the optimizer's rates. Otherwise, the epoch after which to
            go on: the groups must then have ``"initial_lr"``.

    Attributes:
        base_lrs: the rates at the start, one for each group.
        last_epoch: how many steps have been taken.

    Raises:
        TypeError: ``optimizer`` is not an Optimizer.
        KeyError: ``last_epoch`` is not -1, and a group has no ``"initial_lr"``.
    """

    base_lrs: list[Any]
    _not_saved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: param_groups[{i}] has no 'initial_lr', which going on "
                    f"after last_epoch={last_epoch} needs; load the optimizer's state first"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._get_lr_called_within_step = False
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, to be saved."""
        return {k: v for k, v in self.__dict__.items() if k not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave. The optimizer's own state has its rates."""
        self.__dict__.update(as_state(self, state_dict))

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for ``self.last_epoch``, one for each group."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, and set its rates.

        Args:
            epoch: the epoch to go to instead; deprecated, and computed without those before where
                the schedule allows it.
        """
        if self._step_count == 1 and not self.optimizer._step_was_called:
            warnings.warn(
                f"{type(self).__name__}: step() was called before optimizer.step(), so the first "
                "rate of the schedule is skipped; call optimizer.step() first",
                stacklevel=2,
            )
        if epoch is not None:
            warnings.warn(
                f"{type(self).__name__}: step(epoch) is deprecated; call step() once for each "
                "epoch",
                stacklevel=2,
            )
        before = self._step_count, self.last_epoch
        try:
            self._step_count += 1
            if epoch is None:
                self.last_epoch += 1
                self._take(self.get_lr)
            else:
                self._go_to(epoch)
        except BaseException:  # if computing the rates fails, the epoch does not advance
            self._step_count, self.last_epoch = before
            raise

    # A SequentialLR undoes the step that constructing a schedule has taken, and starts the schedule
    # at its milestone.
    def _undo_step(self) -> None:
        self.last_epoch -= 1

    def _start(self) -> None:
        self._go_to(0)

    def _go_to(self, epoch: int) -> None:
        self.last_epoch = epoch
        self._take(getattr(self, "_get_closed_form_lr", self.get_lr))

    def _take(self, compute: Callable[[], list[Any]]) -> None:
        """Set the rates that ``compute`` gives."""
        self._get_lr_called_within_step = True
        try:
            rates = compute()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = self._current()

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                f"{type(self).__name__}: get_lr() computes the next rates, from those that are set "
                "now; get_last_lr() gives the last ones",
                stacklevel=3,
            )

    def _current(self) -> list[Any]:
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[Any]:
        """The rates that are set now, times ``factor``."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]
