"""Tables that print as text, and as HTML in notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

_STYLE = """<style>
.taeda-table{border-collapse:collapse;font-size:90%}
.taeda-table caption{text-align:left;font-weight:600;padding:4px 0}
.taeda-table th,.taeda-table td{text-align:left;padding:2px 10px;
border-bottom:1px solid rgba(128,128,128,.35)}
.taeda-table td.n{text-align:right;font-variant-numeric:tabular-nums}
.taeda-note{margin:4px 0;white-space:pre-wrap}
</style>"""


def number(value: float | None) -> str:
    """A number with about four digits.

    >>> number(0.00012345), number(1234567.0), number(2.0), number(None)
    ('1.234e-04', '1.235e+06', '2', '-')
    """
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.3e}"


def percent(value: float | None) -> str:
    """A share in percent.

    >>> percent(0.0123), percent(float("inf")), percent(None)
    ('1.2%', 'inf', '-')
    """
    if value is None:
        return "-"
    if not math.isfinite(value):
        return f"{value:g}"
    return f"{100 * value:.2g}%" if value < 0.995 else f"{100 * value:.0f}%"


def count(value: float) -> str:
    """A whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,.0f}"


def size(value: float) -> str:
    """A number of bytes.

    >>> size(100), size(2_500_000)
    ('100 B', '2.5 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.1f} {unit}"
    return f"{value:.0f} B"


class Table:
    """Rows under headings, with a title above and notes below.

    Args:
        title: the line above.
        headings: of the columns.
        right: which columns are aligned to the right.
    """

    def __init__(self, title: str, headings: Sequence[str], right: Sequence[str] = ()) -> None:
        self.title = title
        self.headings = list(headings)
        self.right = set(right)
        self.rows: list[list[str]] = []
        self.notes: list[str] = []

    def add(self, *cells: Any) -> None:
        """Add a row."""
        self.rows.append([str(cell) for cell in cells])

    def text(self) -> str:
        """The table for a terminal."""
        lines = [self.title] if self.title else []
        if self.rows:
            columns = list(zip(self.headings, *self.rows, strict=True))
            widths = [max(map(len, column)) for column in columns]
            rule = "  ".join("-" * width for width in widths)
            lines += [self._line(self.headings, widths), rule]
            lines += [self._line(row, widths) for row in self.rows]
        return "\n".join([*lines, *self.notes])

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = [
            cell.rjust(width) if heading in self.right else cell.ljust(width)
            for cell, width, heading in zip(cells, widths, self.headings, strict=True)
        ]
        return "  ".join(padded).rstrip()

    def html(self) -> str:
        """The table for a notebook."""
        escape = html.escape
        head = "".join(f"<th>{escape(h)}</th>" for h in self.headings)
        body = ""
        for row in self.rows:
            cells = ""
            for cell, heading in zip(row, self.headings, strict=True):
                align = ' class="n"' if heading in self.right else ""
                cells += f"<td{align}>{escape(cell)}</td>"
            body += f"<tr>{cells}</tr>"
        notes = "".join(
            f'<div class="taeda-note">{escape(n)}</div>' for n in self.notes if n.strip()
        )
        return (
            f'{_STYLE}<table class="taeda-table"><caption>{escape(self.title)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
        )
