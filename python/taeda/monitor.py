"""Numbers and events that a program reports, and those who listen to them.

>>> from datetime import datetime
>>> seen = []
>>> handle = taeda.monitor.register_event_handler(seen.append)
>>> taeda.monitor.log_event(taeda.monitor.Event("epoch", datetime.now(), {"loss": 0.5}))
>>> seen[0].name, seen[0].data
('epoch', {'loss': 0.5})
>>> taeda.monitor.unregister_event_handler(handle)
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taeda.utils.tensorboard import SummaryWriter

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
data_value_t = (int, float, bool, str)  # what the values of an event may be


class Aggregation(enum.Enum):
    """What a `Stat` makes of its numbers."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


COUNT, MAX, MEAN, MIN, SUM, VALUE = (
    Aggregation.COUNT,
    Aggregation.MAX,
    Aggregation.MEAN,
    Aggregation.MIN,
    Aggregation.SUM,
    Aggregation.VALUE,
)


class Event:
    """Something that has happened.

    Args:
        name: what.
        timestamp: when.
        data: more about it: numbers and texts by name.
    """

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, Any]) -> None:
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, data_value_t):
                raise TypeError(
                    f"Event: data must be str by int, float, bool or str, got {key!r}: {value!r}"
                )
        self.name = name
        self.timestamp = timestamp
        self.data = dict(data)


class EventHandlerHandle:
    """What `register_event_handler` returns, and `unregister_event_handler` takes."""

    def __init__(self, callback: Callable[[Event], Any]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []
_lock = threading.Lock()


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """Let a function be called with each event."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Let a function not be called any more.

    Raises:
        RuntimeError: it is not.
    """
    with _lock:
        if handler not in _handlers:
            raise RuntimeError("unregister_event_handler: the handler is not registered")
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Report an event to all that listen."""
    with _lock:
        handlers = list(_handlers)
    for handler in handlers:
        handler._callback(event)


class Stat:
    """What is made of the numbers within a time window.

    When the window is over, an event ``torch.monitor.Stat`` says what has been made of them.

    Args:
        name: of what.
        aggregations: what to make of them.
        window_size: how long a window is.
        max_samples: how many numbers end it early.

    >>> from datetime import timedelta
    >>> from taeda.monitor import Aggregation, Stat
    >>> stat = Stat("loss", [Aggregation.SUM, Aggregation.MAX], timedelta(hours=1), 2)
    >>> stat.add(1.0)
    >>> stat.add(2.0)
    >>> stat.get()
    {<Aggregation.SUM: 4>: 3.0, <Aggregation.MAX: 5>: 2.0}
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: timedelta,
        max_samples: int = 2**63 - 1,
    ) -> None:
        self.name = name
        self._aggregations = list(dict.fromkeys(aggregations))
        self._window = window_size.total_seconds()
        self._most = max_samples
        self._start = time.monotonic()
        self._values: list[float] = []
        self._last: list[float] = []

    def _close(self) -> None:
        """End the window if it is over."""
        if time.monotonic() - self._start < self._window and len(self._values) < self._most:
            return
        self._last, self._values = self._values, []
        self._start = time.monotonic()
        if self._last:
            data = {f"{self.name}.{a.name.lower()}": value for a, value in self.get().items()}
            log_event(Event(STAT_EVENT, datetime.now(), data))

    def add(self, v: float) -> None:
        """Add a number."""
        self._values.append(float(v))
        self._close()

    @property
    def count(self) -> int:
        """How many numbers this window has."""
        self._close()
        return len(self._values)

    def get(self) -> dict[Aggregation, float]:
        """What was made of the numbers of the last window that is over."""
        values = self._last
        made = {
            Aggregation.VALUE: values[-1] if values else 0.0,
            Aggregation.MEAN: sum(values) / len(values) if values else 0.0,
            Aggregation.COUNT: float(len(values)),
            Aggregation.SUM: float(sum(values)),
            Aggregation.MAX: max(values, default=0.0),
            Aggregation.MIN: min(values, default=0.0),
        }
        return {a: made[a] for a in self._aggregations}


class TensorboardEventHandler:
    """Write what the events of `Stat` say to TensorBoard: for `register_event_handler`.

    Args:
        writer: a ``SummaryWriter``.
    """

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        """Write an event."""
        if event.name == STAT_EVENT:
            for key, value in event.data.items():
                self._writer.add_scalar(key, value, walltime=event.timestamp.timestamp())
