"""Times of statements."""

from __future__ import annotations

import textwrap
import timeit
from collections.abc import Callable
from time import perf_counter as timer
from typing import Any

import taeda
from taeda.utils.benchmark._measurement import Measurement, TaskSpec

__all__ = ["Timer", "timer"]


class Timer:
    """Times a statement, with a number of threads of its own, after a warm-up.

    Args:
        stmt: the statement, or several lines of them.
        setup: run once before each measurement, in the statement's namespace.
        timer: a function that gives the time in seconds.
        globals: names that the statement may use; `taeda`, and `torch` for it, are added.
        label, sub_label, description: what tables are named after, rows, and columns.
        env: where it ran, to tell rows apart.
        num_threads: how many threads operations use while the statement runs.

    Raises:
        ValueError: `stmt` is no string.

    >>> Timer("x.sum()", globals={"x": taeda.ones(4)}, num_threads=1).timeit(10).number_per_run
    10
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
    ) -> None:
        for name, text in (("stmt", stmt), ("setup", setup)):
            if not isinstance(text, str):
                raise ValueError(f"Timer: {name} must be a str, got {type(text).__name__}")
        names = dict(globals or {})
        for name in ("taeda", "torch"):
            names.setdefault(name, taeda)
        self._globals = names
        stmt, setup = (textwrap.dedent(text).strip("\n") for text in (stmt, setup))
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(
            stmt, setup, label, sub_label, description, env, num_threads=num_threads
        )

    def _run(self, number: int) -> float:
        """Seconds for that many statements."""
        before = taeda.get_num_threads()
        taeda.set_num_threads(self._task_spec.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            taeda.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement that many times, after a hundredth as many to warm up."""
        self._run(max(number // 100, 2))
        return self._measured(number, [self._run(number)])

    def blocked_autorange(
        self,
        callback: Callable[[int, float], Any] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Measure blocks so long that taking the time costs little, until `min_run_time` is over.

        Args:
            callback: called with each block's number of statements and its seconds.
            min_run_time: seconds to measure for, at the least.
        """
        number = self._block_size(min_run_time)
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure blocks until their interquartile range is less than a share of the median.

        Args:
            threshold: that share.
            min_run_time, max_run_time: seconds to measure for, at the least and at the most.
            callback: called with each block's number of statements and its seconds.
        """
        number = self._block_size(min_run_time)
        times: list[float] = []
        while True:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            spent, measured = sum(times), self._measured(number, times)
            settled = len(times) > 3 and measured.meets_confidence(threshold)
            if (settled and spent >= min_run_time) or spent >= max_run_time:
                return measured

    def _block_size(self, min_run_time: float) -> int:
        """How many statements take a thousandth of the time, and a thousand times the clock's."""
        overhead = min(self._run(0) for _ in range(5))
        least = max(min_run_time / 1000, overhead * 1000)
        number = 1
        while True:
            spent = self._run(number)
            if spent >= least or number >= 2**30:
                return number
            number = max(2 * number, min(10 * number, int(number * least / max(spent, 1e-9))))

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, list(times), self._task_spec)
