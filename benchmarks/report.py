"""What the measurements come to: ratios, means, shares of the machine's limits, and their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from benchmarks.cases.table import Case

Times = dict[tuple[str, int], float]  # (framework, threads): seconds

NAMES = {"taeda": "taeda", "torch": "PyTorch"}
LARGE_GROUPS = ("memory", "compute", "training")
LARGE_SECONDS = 1e-3  # work for which a second thread is expected to pay


class Limits(NamedTuple):
    """Bytes and float32 operations per second of the machine; 0 where not measured."""

    bandwidth: float
    rate: float


class Row(NamedTuple):
    """A case and its times."""

    case: Case
    times: Times


def ratio(times: Times, threads: int) -> float | None:
    """PyTorch's time over taeda's: above 1 where taeda is faster."""
    ours, theirs = times.get(("taeda", threads)), times.get(("torch", threads))
    return theirs / ours if ours and theirs else None


def is_large(row: Row) -> bool:
    """Whether the case takes either framework a millisecond or more on one thread."""
    one = [row.times.get((name, 1), 0.0) for name in ("taeda", "torch")]
    return row.case.group in LARGE_GROUPS and max(one) >= LARGE_SECONDS


def speed_up(row: Row, threads: int) -> float | None:
    """The time of taeda on one thread over its time on several; None for small work."""
    one, many = row.times.get(("taeda", 1)), row.times.get(("taeda", threads))
    return one / many if one and many and threads > 1 and is_large(row) else None


def share(case: Case, seconds: float | None, limits: Limits) -> float | None:
    """The least time that the machine's limits allow for the declared work, over the time taken."""
    bounds = []
    if case.bytes and limits.bandwidth:
        bounds.append(case.bytes / limits.bandwidth)
    if case.flops and limits.rate:
        bounds.append(case.flops / limits.rate)
    return max(bounds) / seconds if bounds and seconds else None


def geometric_mean(values: Iterable[float]) -> float:
    """The exponential of the mean logarithm; NaN for no values."""
    logs = [math.log(v) for v in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def best_rate(rows: Iterable[Row], threads: int) -> float:
    """The most float32 operations per second in any row, for machines without an FMA figure."""
    times = ((row.case.flops, t) for row in rows for at, t in row.times.items() if at[1] == threads)
    return max((flops / t for flops, t in times), default=0.0)


def summary(named: list[tuple[str, float | None]]) -> str | None:
    """Geometric mean and lowest row of (title, figure) pairs, as a line; None without figures."""
    known = [(value, title) for title, value in named if value is not None]
    if not known:
        return None
    lowest, title = min(known)
    mean = geometric_mean(value for value, _ in known)
    return f"geometric mean {mean:.2f} over {counted(len(known), 'row')}, lowest {lowest:.2f} ({title})"


def seconds_text(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def bytes_text(count: float) -> str:
    return f"{count / 1e6:,.1f} MB"


def ratio_text(value: float) -> str:
    return f"{value:.2f}"


def percent_text(value: float) -> str:
    return f"{value:.0%}"


def cell(value: float | None, text: Callable[[float], str]) -> str:
    return text(value) if value else "—"


def counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def threads_text(count: int) -> str:
    return counted(count, "thread")


def markdown_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """The first column is text, the others are figures."""
    rule = "|---|" + "---:|" * (len(heads) - 1)
    return [f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(cells)} |" for cells in rows), ""]


def group_lines(group: str, rows: list[Row], limits: dict[int, Limits]) -> list[str]:
    """A group's heading, its means and lowest rows, and the table of its cases."""
    threads = list(limits)
    several = [count for count in threads if count > 1 and group in LARGE_GROUPS]
    shares = group in ("memory", "compute")
    heads = [""]
    for count in threads:
        heads += [f"taeda, {threads_text(count)}", f"PyTorch, {threads_text(count)}", "ratio"]
    heads += [f"taeda {count}/1" for count in several]
    heads += [f"of the limit, {threads_text(count)}" for count in threads if shares]
    table = []
    for row in rows:
        cells = [row.case.title]
        for count in threads:
            for name in ("taeda", "torch"):
                cells.append(cell(row.times.get((name, count)), seconds_text))
            cells.append(cell(ratio(row.times, count), ratio_text))
        cells += [cell(speed_up(row, count), ratio_text) for count in several]
        for count in threads if shares else []:
            part = share(row.case, row.times.get(("taeda", count)), limits[count])
            cells.append(cell(part, percent_text))
        table.append(cells)
    return [
        f"## {group.capitalize()}",
        "",
        *group_means(rows, threads),
        *markdown_table(heads, table),
    ]


def times_as_long(row: Row, base: Row, threads: int = 1) -> float | None:
    """The time of taeda in one row over its time in the other: above 1 where the other is faster."""
    here, there = row.times.get(("taeda", threads)), base.times.get(("taeda", threads))
    return here / there if here and there else None


def level_lines(group: str, rows: list[Row], base: list[Row], versus: str) -> list[str]:
    """A group on a lower instruction set: what was measured, and the time beside the base's."""
    measured = sorted({at for row in rows for at in row.times}, key=lambda at: (at[1], at[0]))
    threads = sorted({count for _, count in measured})
    heads = [""]
    for count in threads:
        names = [name for name, number in measured if number == count]
        heads += [f"{NAMES[name]}, {threads_text(count)}" for name in names]
        heads += ["ratio"] if len(names) > 1 else []
    table, slower = [], []
    for row, other in zip(rows, base, strict=True):
        cells = [row.case.title]
        for count in threads:
            names = [name for name, number in measured if number == count]
            cells += [cell(row.times.get((name, count)), seconds_text) for name in names]
            cells += [cell(ratio(row.times, count), ratio_text)] if len(names) > 1 else []
        times = times_as_long(row, other)
        slower.append((row.case.title, times))
        table.append([*cells, cell(times, ratio_text)])
    means = group_means(rows, threads, speed_ups=False)
    known = [(value, title) for title, value in slower if value is not None]
    if known:
        mean, (most, title) = geometric_mean(value for value, _ in known), max(known)
        line = f"- {versus}, taeda's time, 1 thread: geometric mean {mean:.2f}, highest {most:.2f} ({title})."
        means = [*means[:-1], line, ""]
    return [f"### {group.capitalize()}", "", *means, *markdown_table([*heads, versus], table)]


def group_means(rows: list[Row], threads: list[int], speed_ups: bool = True) -> list[str]:
    lines = []
    for count in threads:
        line = summary([(row.case.title, ratio(row.times, count)) for row in rows])
        lines += [f"- PyTorch / taeda, {threads_text(count)}: {line}."] if line else []
    for count in threads if speed_ups else []:
        line = summary([(row.case.title, speed_up(row, count)) for row in rows])
        lines += [f"- taeda, 1 thread / {count}, large rows: {line}."] if line else []
    return [*lines, ""] if lines else []


def pair_table(first: str, rows: list[tuple[str, dict[str, float]]], text) -> list[str]:
    """A table of one figure for each framework, and the ratio."""
    table = []
    for title, found in rows:
        ours, theirs = found.get("taeda"), found.get("torch")
        quotient = theirs / ours if ours and theirs else None
        table.append([title, cell(ours, text), cell(theirs, text), cell(quotient, ratio_text)])
    return markdown_table([first, "taeda", "PyTorch", "PyTorch / taeda"], table)


def limits_lines(limits: dict[int, Limits], source: str) -> list[str]:
    rows = [
        [
            threads_text(count),
            cell(found.bandwidth / 1e9, lambda v: f"{v:.1f} GB/s"),
            cell(found.rate / 1e9, lambda v: f"{v:.0f} GFLOP/s"),
        ]
        for count, found in limits.items()
    ]
    return [
        "## The machine's limits",
        "",
        "Measured in every round. Copying: 128 MB by streaming stores or by the C library's memmove, the",
        "faster of the two, counted as 256 MB (read and written).",
        f"Arithmetic, float32: {source}.",
        "A kernel's share of the limit is the least time that its declared work takes at these rates,",
        "over taeda's time. Shares may pass 100 %: reading and work in place move bytes faster than",
        "copying does, caches are faster than memory, bfloat16 is faster than float32, and Winograd's",
        "method makes do with fewer multiplications in a 3x3 convolution than the definition counted here.",
        "",
        *markdown_table(["", "copying", "multiply-add"], rows),
    ]
