"""Learning rate schedules as functions from an optimizer's state to the next."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from taeda.functional._state import OptimizerState, copied
from taeda.optim import Optimizer

__all__ = ["PureScheduler", "ScheduleState", "scheduler"]


class _Options(Optimizer):
    """An optimizer as a schedule sees it: groups of options, and nothing to step."""

    def step(self, closure: Any = None) -> Any:
        raise RuntimeError("scheduler: a schedule does not step its optimizer")


class ScheduleState:
    """Where a schedule is; immutable.

    Attributes:
        last_lr: the rate of each group that its last step has set.
    """

    def __init__(self, schedule: Any, optimizer: Optimizer) -> None:
        self._schedule = schedule
        self._optimizer = optimizer

    @property
    def last_lr(self) -> list[Any]:
        return [copied(group["lr"]) for group in self._optimizer.param_groups]

    def __repr__(self) -> str:
        epoch = getattr(self._schedule, "last_epoch", None)
        kind = type(self._schedule).__name__
        return f"ScheduleState({kind}, last_epoch {epoch}, lr {self.last_lr})"

    def state_dict(self) -> dict[str, Any]:
        """The state as the ordinary schedule's ``state_dict()`` gives it, to be saved."""
        return copied(self._schedule.state_dict())


class PureScheduler:
    """A learning rate schedule without hidden state. See ``scheduler``."""

    def __init__(self, kind: Callable[..., Any], args: Any, kwargs: Any) -> None:
        if not callable(kind):
            raise TypeError(
                f"scheduler: expected a class such as taeda.optim.lr_scheduler.StepLR, got {kind!r}"
            )
        self._kind, self._args, self._kwargs = kind, args, kwargs

    def init(self, state: OptimizerState) -> tuple[OptimizerState, ScheduleState]:
        """The optimizer's state with the schedule's first rates, and the schedule's own state."""
        optimizer = _options_of(state)
        schedule = self._kind(optimizer, *self._args, **self._kwargs)
        return _with_options(state, optimizer), ScheduleState(schedule, optimizer)

    def step(
        self, state: OptimizerState, schedule: ScheduleState, *args: Any
    ) -> tuple[OptimizerState, ScheduleState]:
        """Set the next rates.

        Args:
            state: the optimizer's state.
            schedule: what ``init`` or the last step gave.
            args: what the schedule's ``step`` takes: of ReduceLROnPlateau, the metric.

        Returns:
            The optimizer's state with these rates, and the schedule's next state.
        """
        optimizer = _options_of(state)
        # Schedules made of several refer to each other, and all of them to the optimizer.
        following = copy.deepcopy(schedule._schedule, {id(schedule._optimizer): optimizer})
        following.step(*args)
        return _with_options(state, optimizer), ScheduleState(following, optimizer)

    def load_state_dict(
        self, state_dict: dict[str, Any], state: OptimizerState
    ) -> tuple[OptimizerState, ScheduleState]:
        """Both states as they were when ``state_dict`` and ``state`` were saved."""
        optimizer = _options_of(state)
        schedule = self._kind(optimizer, *self._args, **self._kwargs)
        schedule.load_state_dict(copied(state_dict))
        return state, ScheduleState(schedule, _options_of(state, optimizer))


def _options_of(state: OptimizerState, into: Any = None) -> Optimizer:
    optimizer: Any = _Options.__new__(_Options) if into is None else into
    optimizer.__dict__.update(copied(state._attributes))
    optimizer.param_groups = [{**copied(group), "params": []} for group in state._groups]
    optimizer.state = defaultdict(dict)
    optimizer.defaults = {k: v for k, v in state._groups[0].items() if k != "params"}
    return optimizer


def _with_options(state: OptimizerState, optimizer: Optimizer) -> OptimizerState:
    groups = [
        {**copied({k: v for k, v in group.items() if k != "params"}), "params": own["params"]}
        for group, own in zip(optimizer.param_groups, state._groups, strict=True)
    ]
    return OptimizerState(state._store, groups, state._attributes)


def scheduler(kind: Callable[..., Any], *args: Any, **kwargs: Any) -> PureScheduler:
    """The form without hidden state of a learning rate schedule.

    Args:
        kind: a class of ``taeda.optim.lr_scheduler``, or a function that makes a schedule for the
            optimizer that it is given, as for a SequentialLR.
        args, kwargs: what follows the optimizer in the class's constructor.

    >>> import taeda
    >>> sgd = taeda.functional.optimizer(taeda.optim.SGD, lr=1.0)
    >>> halve = taeda.functional.scheduler(taeda.optim.lr_scheduler.ExponentialLR, gamma=0.5)
    >>> parameters = taeda.functional.Parameters({"w": taeda.ones(1)})
    >>> state, schedule = halve.init(sgd.init(parameters))
    >>> parameters, state = sgd.step(
    ...     parameters, taeda.functional.Parameters({"w": taeda.ones(1)}), state
    ... )
    >>> state, schedule = halve.step(state, schedule)
    >>> schedule.last_lr
    [0.5]
    """
    return PureScheduler(kind, args, kwargs)
