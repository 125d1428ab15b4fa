"""`profile`, its schedule, and ranges with names."""

from __future__ import annotations

import enum
import functools
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import taeda
from taeda import _C
from taeda.profiler import _device
from taeda.profiler._events import EventList, events_of

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """Kinds of recorded activity: the operations of the CPU, and what CUDA devices do."""

    CPU = 0
    CUDA = 1


class ProfilerAction(enum.Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Whether Kineto is used for recording: no, taeda has its own recorder."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """The supported activities: the CPU's, and CUDA's where CUPTI is installed."""
    cuda = {ProfilerActivity.CUDA} if _device.is_available() else set()
    return {ProfilerActivity.CPU, *cuda}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule of cycles: `wait` steps without recording, then `warmup` and `active` steps.

    Args:
        wait, warmup: steps that are not recorded, before those that are.
        active: steps that are; the record is given away at the end of the last.
        repeat: how many cycles; 0 for ever.
        skip_first: steps before the first cycle.

    >>> plan = taeda.profiler.schedule(wait=1, warmup=0, active=1)
    >>> plan(0), plan(1)
    (<ProfilerAction.NONE: 0>, <ProfilerAction.RECORD_AND_SAVE: 3>)
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"schedule(): active must be positive and the others not negative, got wait={wait}, "
            f"warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule(): step must not be negative, got {step}")
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each record to a file of its own in `dir_name`."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Record the operations that this thread runs within the block.

    Args:
        activities: of `ProfilerActivity`; by default all that are supported. For CUDA, kernels and
            copies are recorded with the operations that started them, by the package
            nvidia-cuda-cupti.
        schedule: what to do in which step, as `schedule` makes it; `step()` ends a step. By default
            everything is recorded.
        on_trace_ready: called with the profiler when a record is complete: at the end of a cycle,
            or of the block.
        record_shapes: note the shapes of arguments.
        profile_memory: note how many bytes each operation left allocated.

    Attributes: ``step_num``, ``current_action``.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        if not self.activities or not self.activities <= set(ProfilerActivity):
            raise ValueError(f"profile(): activities must be CPU or CUDA, got {self.activities}")
        self._asked = activities is not None
        self._on_device = ProfilerActivity.CUDA in self.activities
        if self._on_device and not taeda.cuda.is_available():
            raise ValueError(
                f"profile(): activities must be the CPU alone where there is no CUDA device, got "
                f"{self.activities}"
            )
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._recording = False
        self._step: int = -1
        self._events = EventList(memory=profile_memory)

    def start(self) -> None:
        """Begin."""
        self.current_action = self.schedule(self.step_num)
        self._follow()

    def stop(self) -> None:
        """End, and give the record away."""
        if self._recording:
            self._save()

    def step(self) -> None:
        """End a step of the schedule."""
        if self._recording:
            _C._profile_exit(self._step)
        if self.current_action is ProfilerAction.RECORD_AND_SAVE and self._recording:
            self._save()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._follow()

    def _follow(self) -> None:
        wanted = self.current_action in _RECORDING
        if wanted and not self._recording:
            if self._on_device:
                self._start_device()
            _C._profile_start(self.record_shapes, self.profile_memory)
        elif self._recording and not wanted:
            self._take()
        self._recording = wanted
        if wanted and self.step_num:
            self._step = _C._profile_enter(f"ProfilerStep#{self.step_num}")

    def _start_device(self) -> None:
        try:
            _device.start()
        except RuntimeError as error:  # another profiler is at work, or it is not allowed
            if self._asked:
                raise
            warnings.warn(f"profile(): only the CPU is recorded: {error}", stacklevel=4)
            self._on_device = False

    def _take(self) -> None:
        record = _C._profile_stop()
        work = _device.stop() if self._on_device else None
        self._events = events_of(record, self.profile_memory, work)
        self._recording = False

    def _save(self) -> None:
        self._take()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def events(self) -> EventList:
        """The last record's events, in the order in which they began."""
        if self._recording:
            raise AssertionError("profile.events(): the profiler is still running")
        return self._events

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The sums over the calls of each operation; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Write the last record for ``chrome://tracing`` and Perfetto."""
        self.events().export_chrome_trace(path)


class record_function:
    """A range with a name in the record of a profiler. A block, or a decorator.

    >>> @taeda.profiler.record_function("double")
    ... def double(x):
    ...     return x + x
    >>> double(taeda.ones(1))
    tensor([2.])
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name if args is None else f"{name}({args})"
        self._ranges: list[int] = []

    def __enter__(self) -> record_function:
        self._ranges.append(_C._profile_enter(self.name))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._profile_exit(self._ranges.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped
