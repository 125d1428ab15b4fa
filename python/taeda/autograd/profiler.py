"""The profiler by its older name; see `taeda.profiler`.

>>> import taeda
>>> with taeda.autograd.profiler.profile() as prof:
...     y = taeda.ones(2).exp()
>>> [e.name for e in prof.function_events if e.name == "aten::exp"]
['aten::exp']
"""

from __future__ import annotations

from typing import Any

from taeda import profiler as _profiler
from taeda.profiler import EventList, FunctionEvent, FunctionEventAvg, record_function

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "emit_nvtx",
    "profile",
    "record_function",
]


class profile:
    """Record the operations that this thread runs within the block.

    Args:
        enabled: False records nothing.
        record_shapes: note the shapes of arguments.
        profile_memory: note how many bytes each operation left allocated.
    """

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False
    ) -> None:
        self.enabled = enabled
        self._profile = _profiler.profile(
            record_shapes=record_shapes, profile_memory=profile_memory
        )

    def __enter__(self) -> profile:
        if self.enabled:
            self._profile.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._profile.stop()

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began."""
        return self._profile.events()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once, in microseconds."""
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The sums over the calls of each operation."""
        return self._profile.key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **kwargs: Any) -> str:
        """The events as text; see `EventList.table`."""
        return self.function_events.table(sort_by, row_limit, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for ``chrome://tracing`` and Perfetto."""
        self.function_events.export_chrome_trace(path)


class emit_nvtx:
    """Tell NVIDIA's profiler about each operation, which is not supported: it cannot be entered.

    ``cuda.nvtx.range`` marks parts of a program.

    Args:
        enabled: False does nothing.
        record_shapes: whether shapes would be told, too.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise RuntimeError(
                "emit_nvtx: operations are not told to NVTX; mark parts by cuda.nvtx.range"
            )
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Leave the block: there is nothing to undo."""


class EnforceUnique:
    """Says when something comes a second time."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note something.

        Raises:
            RuntimeError: it has been noted before.
        """
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps, of those who ask for it by their names: the most that one has made."""

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Count for another one, from now."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Stop to count for one; whether it was counted for."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One has made a step; the most that one has made."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The most steps that one has made."""
        return cls._current_step
