"""The measurements of a timer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

__all__ = ["Measurement", "TaskSpec", "select_unit"]

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_NAMES = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_NOISY = 0.1  # of the median, above which the spread is worth a warning


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to print a time in seconds, and its length: ns, us, ms or s.

    >>> select_unit(0.0025)
    ('ms', 0.001)
    """
    return next((unit for unit in reversed(_UNITS) if t >= unit[1]), _UNITS[0])


def full_name(unit: str) -> str:
    """The unit's name in full."""
    return _NAMES[unit]


def rounded(value: float, figures: int) -> float:
    """A number with that many significant figures."""
    if not value or not math.isfinite(value):
        return value
    return round(value, figures - 1 - math.floor(math.log10(abs(value))))


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The timed task: the statement, what was run before it, and how to name it in tables."""

    stmt: str
    setup: str = "pass"
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the part of it, or else the statement."""
        parts = [part for part in (self.label, self.sub_label) if part]
        return ": ".join(parts) if parts else self.stmt

    def summarize(self) -> str:
        """The title, the description and the setup, each in a line of its own."""
        lines = [self.title]
        if self.description:
            lines.append(self.description)
        if self.setup not in ("", "pass"):
            lines.append(f"setup: {self.setup}")
        return "\n".join(lines)


class Measurement:
    """Times of one task. The fields of its `TaskSpec` are attributes of it too.

    Args:
        number_per_run: how often each time ran the statement.
        raw_times: seconds of each run, for all of its `number_per_run` statements.
        task_spec: what was timed.
        metadata: whatever else is to be remembered.

    Raises:
        ValueError: `number_per_run` is less than 1.

    >>> m = Measurement(2, [2.0, 3.0, 4.0], TaskSpec("f(x)", description="plain"))
    >>> m.times, m.median
    ([1.0, 1.5, 2.0], 1.5)
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        if number_per_run < 1:
            raise ValueError(
                f"Measurement: number_per_run must be at least 1, got {number_per_run}"
            )
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        spec = self.__dict__.get("task_spec")
        if spec is None or name.startswith("__"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one statement, for each run."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median of `times`; NaN where there are none."""
        return median(self.times) if self.raw_times else math.nan

    @property
    def mean(self) -> float:
        """The mean of `times`; NaN where there are none."""
        return fmean(self.times) if self.raw_times else math.nan

    @property
    def iqr(self) -> float:
        """How far the quartiles of `times` are from each other."""
        low, high = self._quartiles()
        return high - low

    def _quartiles(self) -> tuple[float, float]:
        times = sorted(self.times)
        if not times:
            return math.nan, math.nan

        def at(share: float) -> float:
            place = share * (len(times) - 1)
            below = math.floor(place)
            above = min(below + 1, len(times) - 1)
            return times[below] + (place - below) * (times[above] - times[below])

        return at(0.25), at(0.75)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread supports, from 1 to 4; 2 of one time."""
        if len(self.raw_times) < 2:
            return 2
        spread = self.iqr / self.median if self.median else 1.0
        return min(max(math.ceil(-math.log10(spread)), 1), 4) if spread > 0 else 4

    def meets_confidence(self, threshold: float = _NOISY) -> bool:
        """Whether the interquartile range is less than that share of the median."""
        return bool(self.iqr / self.median < threshold)

    @property
    def has_warnings(self) -> bool:
        """Whether the spread is so large that something else may have disturbed the times."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The title of the task."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The environment, if given."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times for one statement of all of that task's."""
        by_task: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            by_task.setdefault(measurement.task_spec, []).append(measurement)
        return [
            Measurement(1, [time for one in group for time in one.times], spec)
            for spec, group in by_task.items()
        ]

    def __repr__(self) -> str:
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        count, threads = len(self.raw_times), self.task_spec.num_threads
        unit, length = select_unit(self.median)
        if count == 1:
            lines.append(f"  {self.median / length:.2f} {unit}")
        elif count:
            lines.append(f"  Median: {self.median / length:.2f} {unit}")
            if count >= 4:
                low, high = (edge / length for edge in self._quartiles())
                lines.append(f"  IQR:    {self.iqr / length:.2f} {unit} ({low:.2f} to {high:.2f})")
        per_run = f"{self.number_per_run} runs" + (" per measurement" if count > 1 else "")
        lines.append(
            f"  {count} measurement{'s' * (count != 1)}, {per_run}, "
            f"{threads} thread{'s' * (threads != 1)}"
        )
        if count > 1 and self.has_warnings:
            lines.append(
                f"  WARNING: the interquartile range is "
                f"{self.iqr / self.median:.1%} of the median; "
                "something else may have kept the machine busy"
            )
        return "\n".join(lines)


def trim_sigfig(x: float, n: int) -> float:
    """Round a number to ``n`` significant digits.

    >>> trim_sigfig(123.456, 2)
    120.0
    """
    return float(f"{x:.{n - 1}e}")
