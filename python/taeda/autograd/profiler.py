"""The profiler by its older name; see `taeda.profiler`.

>>> import taeda
>>> with taeda.autograd.profiler.profile() as prof:
...     y = taeda.ones(2).exp()
>>> [e.name for e in prof.function_events if e.name == "aten::exp"]
['aten::exp']
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
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
    """Mark this thread's operations as ranges for NVIDIA's profilers, by the package ``nvtx``.

    Ranges of ``record_function`` are marked, too. ``nsys profile`` then shows kernels with the
    operations that started them. No other profiler may record in this thread meanwhile.

    Args:
        enabled: False does nothing.
        record_shapes: whether ranges are named with the sizes of the operation's tensors.

    Raises:
        RuntimeError: there is no CUDA device, the package is missing, or it is entered twice.

    >>> with taeda.autograd.profiler.emit_nvtx(enabled=False):
    ...     y = taeda.ones(2).exp()
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._entered = False

    def __enter__(self) -> emit_nvtx:
        if not self.enabled:
            return self
        if self._entered:
            raise RuntimeError("emit_nvtx: it is entered already")
        nvtx = taeda.cuda.nvtx
        nvtx._nvtx("range_push")  # says what is missing
        taeda.cuda.synchronize()

        def begin(name: str, sizes: list[list[int]]) -> None:
            nvtx.range_push(f"{name}, sizes = {sizes}" if self.record_shapes else name)

        _C._profile_watch(begin, nvtx.range_pop, self.record_shapes)
        self._entered = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End marking, after waiting for the device."""
        if self._entered:
            self._entered = False
            _C._profile_stop()
            taeda.cuda.synchronize()


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
