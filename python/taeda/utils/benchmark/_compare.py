"""Tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda.utils.benchmark._measurement import Measurement, full_name, rounded, select_unit

__all__ = ["Compare"]

_COLORS = ((1.05, "\033[92m\033[1m"), (1.2, "\033[92m"), (2.0, "\033[93m"))  # up to the best times
_WORST, _PLAIN = "\033[91m", "\033[0m"


class Compare:
    """A table for each label: rows of sub-labels, columns of descriptions, parts for threads.

    Args:
        results: the measurements; those of the same task are merged.

    >>> from taeda.utils.benchmark import Measurement, TaskSpec
    >>> results = [
    ...     Measurement(1, [t * n], TaskSpec("f", label="f", sub_label=f"{n} rows", description=d))
    ...     for n in (1, 100)
    ...     for d, t in (("plain", 2e-6), ("fused", 1e-6))
    ... ]
    >>> Compare(results).print()
    [------------ f -------------]
                |  plain  |  fused
    1 threads: -------------------
      1 rows    |    2.0  |    1.0
      100 rows  |  200.0  |  100.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._highlight = False
        self._colors: bool | None = None

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Raises:
            ValueError: one of them is no Measurement.
        """
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Compare: expected an instance of Measurement, got {type(result).__name__}"
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Print only those figures that the spread of the times supports."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Print in green what is nearly the best of a part, or of each row, and red what is far."""
        self._colors = rowwise

    def highlight_warnings(self) -> None:
        """Print the spread, as a share of the median, of times that may have been disturbed."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        tables: dict[str, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            tables.setdefault(result.task_spec.label or result.task_spec.stmt, []).append(result)
        return "\n".join(self._table(title, results) for title, results in tables.items())

    def _table(self, title: str, results: list[Measurement]) -> str:
        unit, length = select_unit(min(result.median for result in results))
        columns = list(dict.fromkeys(r.task_spec.description or "" for r in results))
        rows = list(dict.fromkeys((r.task_spec.num_threads, _row(r)) for r in results))
        rows.sort(key=lambda row: row[0])
        cells = {
            ((r.task_spec.num_threads, _row(r)), r.task_spec.description or ""): r for r in results
        }
        texts = {place: self._text(result, length) for place, result in cells.items()}
        widths = [
            max([len(column), *(len(texts.get((row, column), "")) for row in rows)])
            for column in columns
        ]
        first = max(len(name) for _, name in rows)
        heads = [" " * (first + 2), *(c.rjust(w) for c, w in zip(columns, widths, strict=True))]
        lines = ["  |  ".join(heads).rstrip()]
        threads = None
        body: list[str] = []
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                body.append(f"{threads} threads: ".ljust(len(lines[0]), "-"))
            parts = ["  " + row[1].ljust(first)]
            for column, width in zip(columns, widths, strict=True):
                text = texts.get((row, column), "").rjust(width)
                parts.append(self._colored(text, cells, row, column))
            body.append("  |  ".join(parts).rstrip())
        middle = f" {title} ".center(len(lines[0]) - 2, "-")
        note = f"Times are in {full_name(unit)}s ({unit})."
        return "\n".join([f"[{middle}]", *lines, *body, "", note, ""])

    def _text(self, result: Measurement, length: float) -> str:
        value = result.median / length
        figures = result.significant_figures
        if self._trim:
            value = rounded(value, figures)
            decimals = max(0, figures - len(str(int(value))))
        else:
            decimals = 1
        text = f"{value:.{decimals}f}"
        if self._highlight and result.has_warnings:
            text = f"(! {result.iqr / result.median:.0%}) {text}"
        return text

    def _colored(self, text: str, cells: dict[Any, Measurement], row: Any, column: str) -> str:
        if self._colors is None or (row, column) not in cells:
            return text
        others = [
            result.median
            for (other, name), result in cells.items()
            if (other == row if self._colors else other[0] == row[0] and name == column)
        ]
        ratio = cells[row, column].median / min(others)
        color = next((color for most, color in _COLORS if ratio <= most), _WORST)
        return f"{color}{text}{_PLAIN}"


def _row(result: Measurement) -> str:
    env = result.task_spec.env
    return f"({env}) {result.as_row_name}" if env else result.as_row_name
