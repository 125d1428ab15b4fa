"""Recorded events of a profiler, aggregated and printed. Times are in microseconds."""

from __future__ import annotations

import json
import os
from typing import Any

from taeda.profiler._device import Work, assign

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]

_SORTS = {
    "count": "count",
    "cpu_time": "cpu_time",
    "cpu_time_total": "cpu_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    "cpu_memory_usage": "cpu_memory_usage",
    "self_cpu_memory_usage": "self_cpu_memory_usage",
    "device_time": "device_time",
    "device_time_total": "device_time_total",
    "self_device_time_total": "self_device_time_total",
    "cuda_time": "device_time",
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
}


class FunctionEvent:
    """One call of an operation, or one range that the program named.

    Attributes: ``name`` (also ``key``), ``start`` and ``end``, ``cpu_parent`` and ``cpu_children``,
    ``input_shapes``, ``is_user_annotation``; ``kernels``, what it made a device do itself.
    """

    count = 1
    on_device = False

    def __init__(
        self, name: str, start: float, end: float, memory: int, user: bool, shapes: list[list[int]]
    ) -> None:
        self.name = self.key = name
        self.start, self.end = start, end
        self.cpu_memory_usage = memory
        self.is_user_annotation = user
        self.input_shapes = shapes
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Work] = []

    @property
    def self_device_time_total(self) -> float:
        """How long the device worked on what it started itself."""
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def device_time_total(self) -> float:
        """How long the device worked on it, and on the operations that it called."""
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    device_time = cuda_time = cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total

    @property
    def cpu_time_total(self) -> float:
        """How long it took."""
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """How long it took without the operations that it called."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it holds more at its end, without the operations that it called."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} {self.start:.3f}..{self.end:.3f} us>"


class DeviceEvent(FunctionEvent):
    """A kernel, a copy or a fill of a device: ``start`` and ``end`` are when it ran there."""

    on_device = True

    def __init__(self, work: Work) -> None:
        super().__init__(work.name, work.begin / 1e3, work.end / 1e3, 0, False, [])
        self.kernels = [work]

    @property
    def cpu_time_total(self) -> float:
        """The CPU's time: none."""
        return 0.0

    cpu_time = cpu_time_total


class FunctionEventAvg:
    """All calls of one operation together."""

    def __init__(self, key: str, shapes: list[list[int]] | None) -> None:
        self.key = key
        self.on_device = False
        self.device_time_total = self.self_device_time_total = 0.0
        self.input_shapes = shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.is_user_annotation = False

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The device's mean time for a call."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time_total(self) -> float:
        """The device's time."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """The device's time, without that of the operations that it called."""
        return self.self_device_time_total

    cuda_time = device_time

    def add(self, event: Any) -> None:
        """Add a call, or the calls of another sum."""
        self.count += event.count
        self.on_device = event.on_device
        self.device_time_total += event.device_time_total
        self.self_device_time_total += event.self_device_time_total
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.is_user_annotation = event.is_user_annotation

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"cpu_time={_time(self.cpu_time)} self_cpu_time={_time(self.self_cpu_time_total)}>"
        )


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _bytes(n: int) -> str:
    for unit, size in (("Gb", 1 << 30), ("Mb", 1 << 20), ("Kb", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} b"


class EventList(list[Any]):
    """Events or their sums, with ways to add them up, print and export them."""

    def __init__(self, events: Any = (), memory: bool = False) -> None:
        super().__init__(events)
        self._memory = memory

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    @property
    def self_device_time_total(self) -> float:
        """The time of all that devices did."""
        return sum(e.self_device_time_total for e in self if e.on_device)

    self_cuda_time_total = self_device_time_total

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The sums over the calls of each operation.

        Args:
            group_by_input_shape: a sum for each combination of shapes.
        """
        sums: dict[Any, FunctionEventAvg] = {}
        for e in self:
            shapes = e.input_shapes if group_by_input_shape else None
            key = (e.key, repr(shapes), e.is_user_annotation, e.on_device)
            sums.setdefault(key, FunctionEventAvg(e.key, shapes)).add(e)
        return EventList(sums.values(), self._memory)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        total = FunctionEventAvg("Total", None)
        for e in self:
            total.add(e)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text, a row for each.

        Args:
            sort_by: "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
                "self_cpu_memory_usage", "count", or the times with "cuda" or "device" for "cpu";
                the largest first; by default as recorded.
            row_limit: how many rows; -1 for all.
            max_name_column_width: where longer names are cut.
            top_level_events_only: leave out events within others.
        """
        rows: list[Any] = list(self)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise AttributeError(f"table(): sort_by must be one of {list(_SORTS)}: {sort_by!r}")
            rows.sort(key=lambda e: getattr(e, _SORTS[sort_by]), reverse=True)
        total = self.self_cpu_time_total
        busy = self.self_device_time_total
        shaped = any(getattr(e, "input_shapes", None) for e in rows)
        cells = [self._heading(shaped, busy > 0)]
        for e in rows if row_limit < 0 else rows[:row_limit]:
            cells.append(self._row(e, (total, busy), max_name_column_width, shaped))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = "  ".join("-" * w for w in widths)
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        totals = [f"Self CPU time total: {_time(total)}"]
        totals += [f"Self CUDA time total: {_time(busy)}"] if busy else []
        return "\n".join([rule, lines[0], rule, *lines[1:], rule, *totals, ""])

    def _heading(self, shaped: bool, device: bool) -> list[str]:
        memory = ["CPU Mem", "Self CPU Mem"] if self._memory else []
        shapes = ["Input Shapes"] if shaped else []
        times = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        there = ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"] if device else []
        return ["Name", *times, *there, *memory, "# of Calls", *shapes]

    def _row(self, e: Any, totals: tuple[float, float], width: int, shaped: bool) -> list[str]:
        name = e.key if len(e.key) <= width else e.key[: width - 3] + "..."

        def share(us: float, total: float = totals[0]) -> str:
            return f"{100 * us / total if total else 0:.2f}%"

        own, whole = e.self_cpu_time_total, e.cpu_time_total
        memory = [_bytes(e.cpu_memory_usage), _bytes(e.self_cpu_memory_usage)]
        there = [
            _time(e.self_device_time_total),
            share(e.self_device_time_total, totals[1]),
            _time(e.device_time_total),
            _time(e.device_time),
        ]
        return [
            name,
            share(own),
            _time(own),
            share(whole),
            _time(whole),
            _time(e.cpu_time),
            *(there if totals[1] else []),
            *(memory if self._memory else []),
            str(e.count),
            *([str(e.input_shapes)] if shaped else []),
        ]

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a file for ``chrome://tracing`` and Perfetto."""
        events = [_device_entry(e) if e.on_device else _host_entry(e) for e in self]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ms", "traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


def _host_entry(e: FunctionEvent) -> dict[str, Any]:
    pid = os.getpid()
    return {
        "ph": "X",
        "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
        "name": e.name,
        "pid": pid,
        "tid": pid,
        "ts": e.start,
        "dur": e.cpu_time_total,
        "args": {"Input Dims": e.input_shapes} if e.input_shapes else {},
    }


def _device_entry(e: FunctionEvent) -> dict[str, Any]:
    work = e.kernels[0]
    kernel = any(work.shape)
    more = {"grid": work.shape[:3], "block": work.shape[3:]} if kernel else {"bytes": work.bytes}
    return {
        "ph": "X",
        "cat": "kernel" if kernel else "gpu_memcpy",
        "name": e.name,
        "pid": work.device,
        "tid": work.stream,
        "ts": e.start,
        "dur": work.duration,
        "args": {"device": work.device, "stream": work.stream, **more},
    }


def events_of(record: list[Any], memory: bool, work: list[Work] | None = None) -> EventList:
    """The core's record as events, and after them, what devices did meanwhile."""
    events = EventList(memory=memory)
    for name, begin, end, parent, held, user, shapes, _ in record:
        event = FunctionEvent(name, begin / 1e3, end / 1e3, held, user, shapes)
        if parent >= 0:
            event.cpu_parent = events[parent]
            events[parent].cpu_children.append(event)
        events.append(event)
    if work:
        assign(work, events)
        events.extend(map(DeviceEvent, work))
    return events
