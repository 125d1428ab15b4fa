"""Measure taeda beside PyTorch.

Each framework runs in processes of its own, one for each number of threads. In every round each of
them measures each case, taking turns, so that a slow phase of the machine meets all. A round's
figure is the fastest of several loops, and a case's figure is the median over the rounds.

    python -m benchmarks                     # tables on the terminal
    python -m benchmarks --write             # and docs/performance.md and its plot
    python -m benchmarks --write --page performance-intel
    python -m benchmarks --groups overhead --rounds 3 --threads 1
    python -m benchmarks --cases mm_1024 add_16m
    python -m benchmarks --cpu v4 v3 v2      # held to each of these instruction sets

The plot needs matplotlib, the Fashion-MNIST group Debian's package dataset-fashion-mnist; without
them the rest is measured all the same, and the reason is printed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import platform
import statistics
import sys
from pathlib import Path

from benchmarks import fashion, footprint, levels, limits, peak, plot, report
from benchmarks.cases import CASES
from benchmarks.report import NAMES, Limits, Row
from benchmarks.rounds import ROOT, Worker, measure_cases

TIMED_GROUPS = ["overhead", "memory", "compute", "training", "files"]
GROUPS = [*TIMED_GROUPS, "peak", "fashion", "footprint"]


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), "unknown")


def footprint_lines(names: list[str], rounds: int) -> list[str]:
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            times[name].append(footprint.import_seconds(name))
    imports = {name: statistics.median(t) for name, t in times.items()}
    sizes = {name: footprint.installed_bytes(name) for name in names}
    return [
        "## Import",
        "",
        *report.pair_table("", [("import in a fresh process", imports)], report.seconds_text),
        "## Size",
        "",
        *report.pair_table("", [("the installed package", sizes)], report.bytes_text),
    ]


def peak_lines(names: list[str], keys: list[str]) -> list[str]:
    whole, above = [], []
    for key in keys:
        found = {name: peak.measure(name, key) for name in names}
        for name, answer in found.items():
            if "error" in answer:
                print(f"{name}: peak memory of {key}: {answer['error']}", file=sys.stderr)
        known = {name: answer for name, answer in found.items() if "peak" in answer}
        title = CASES[key].title
        whole.append((title, {name: float(a["peak"]) for name, a in known.items()}))
        above.append((title, {n: float(a["peak"] - a["imported"]) for n, a in known.items()}))
    return [
        "## Peak memory",
        "",
        f"The largest resident set of a process that makes {peak.STEPS} training steps on one thread, and",
        "how much of it came after the import.",
        "",
        *report.pair_table("the whole process", whole, report.bytes_text),
        *report.pair_table("above the import", above, report.bytes_text),
    ]


def fashion_lines(names: list[str], threads: list[int]) -> list[str]:
    lines = ["## Fashion-MNIST", ""]
    absent = fashion.why_absent()
    if absent:
        return [*lines, f"Skipped: {absent}.", ""]
    rows, notes = [], []
    for count in threads:
        seconds = {}
        for name in names:
            found = fashion.measure(name, count)
            on = f"{NAMES[name]}, {report.threads_text(count)}"
            if "error" in found:
                notes.append(f"{on}: {found['error']}")
                continue
            seconds[name] = found["seconds"]
            notes.append(
                f"{on}: {found['accuracy']:.2%} after {report.counted(found['epochs'], 'epoch')}"
            )
        rows.append((report.threads_text(count), seconds))
    return [
        *lines,
        f"A small convolutional network trained until it reads {fashion.TARGET:.0%} of the test images:",
        "the time to that accuracy, tests included.",
        "",
        *report.pair_table("", rows, report.seconds_text),
        *(f"- {note}." for note in notes),
        "",
    ]


def intro_lines(options: argparse.Namespace, versions: str, load: float) -> list[str]:
    return [
        "# Performance",
        "",
        "Written by `python -m benchmarks --write`. A time is the median, over rounds in which the",
        "frameworks take turns, of the fastest loop in each round, less what the loop takes to call an",
        "empty function. A ratio is PyTorch's time over taeda's: above 1 taeda is faster (or smaller).",
        "",
        f"Instruction set: {levels.title(options.cpu[0])}. "
        f"{versions}; Python {platform.python_version()}; {cpu_name()}, {os.cpu_count()} cores;",
        f"rounds: {options.rounds}; {datetime.date.today()}.",
        f"Load average at the start: {load:.1f}. On a machine with other work to do, ratios are worth",
        "more than times, and figures for several threads tell little: PyTorch's wait for one another.",
        "",
    ]


def timed_lines(rows: list[Row], found: dict[int, Limits]) -> list[str]:
    """The limits, then the tables of the timed groups."""
    source = f"a loop of FMA instructions on registers of {limits.fma_lanes()} lanes"
    if not all(limit.rate for limit in found.values()):
        found = {
            count: Limits(limit.bandwidth, report.best_rate(rows, count))
            for count, limit in found.items()
        }
        source = "the fastest row of this run, for want of a loop of FMA instructions here"
    lines = report.limits_lines(found, source)
    for group in TIMED_GROUPS:
        members = [row for row in rows if row.case.group == group]
        if members:
            lines += report.group_lines(group, members, found)
    return lines


def lower_lines(level: str, rows: list[Row], base_level: str, base: list[Row]) -> list[str]:
    """The section of a lower instruction set; `base` are the same cases on the first."""
    lines = [
        f"## Held to {levels.title(level)}",
        "",
        f"`TAEDA_CPU={level}`, and PyTorch and the libraries under both held to the same set, in the same",
        f"rounds as the tables above; the last column is taeda's time here over its time on {base_level}.",
        "",
    ]
    for group in TIMED_GROUPS:
        members = [i for i, row in enumerate(rows) if row.case.group == group]
        if members:
            here, there = [rows[i] for i in members], [base[i] for i in members]
            lines += report.level_lines(group, here, there, f"{level} / {base_level}")
    return lines


def group_ratios(rows: list[Row], threads: list[int]) -> dict[str, dict[int, list[float]]]:
    """{group: {threads: the ratios that were found}}, without groups that have none."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        for count in threads:
            value = report.ratio(row.times, count)
            if value is not None:
                found.setdefault(row.case.group, {}).setdefault(count, []).append(value)
    return found


def write_plot(page: Path, ratios: dict[str, dict[int, list[float]]]) -> list[str]:
    """Writes the plot beside the page; the lines that show it there."""
    path = page.with_suffix(".svg")
    reason = plot.why_not() if ratios else "no plot: no ratios were measured"
    if reason:
        print(reason, file=sys.stderr)
        path.unlink(missing_ok=True)  # it would show another run
        return []
    plot.write(path, ratios)
    return [f"![PyTorch's time over taeda's, by group]({path.name})", ""]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), metavar="CASE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=list(range(1, min(2, os.cpu_count() or 1) + 1)),
        help="numbers of threads to measure, each in both frameworks",
    )
    parser.add_argument(
        "--cpu",
        nargs="+",
        choices=list(levels.ENVIRONMENTS),
        default=[levels.OWN],
        metavar="LEVEL",
        help="instruction sets (v4 v3 v2) to hold both frameworks to; the first has the full tables, "
        "v2 after another is measured for taeda alone",
    )
    parser.add_argument("--frameworks", nargs="+", choices=list(NAMES))
    parser.add_argument("--write", action="store_true", help="replace a page of docs/")
    parser.add_argument("--page", default="performance", help="its name; default: %(default)s")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.threads) < 1:
        parser.error("--rounds and --threads must be at least 1")
    if options.cases:  # what is left has no cases
        options.groups = [g for g in options.groups if g not in ("fashion", "footprint")]
    options.threads = sorted(set(options.threads))
    options.cpu = list(dict.fromkeys(options.cpu))
    return options


def main() -> None:
    options = parse_options()
    names = options.frameworks or [name for name in NAMES if importlib.util.find_spec(name)]
    load = os.getloadavg()[0]
    if max(options.threads) > 1 and load + max(options.threads) > (os.cpu_count() or 1) + 0.5:
        print(f"load average {load:.1f}: too few free cores for several threads", file=sys.stderr)
    wanted = [key for key in CASES if not options.cases or key in options.cases]
    keys = [key for key in wanted if CASES[key].group in options.groups]
    first, *lower = options.cpu
    workers = [Worker(name, count, first) for count in options.threads for name in names]
    for level in lower:
        if level != "v2":
            workers += [Worker(name, count, level) for count in options.threads for name in names]
        elif "taeda" in names:
            workers.append(Worker("taeda", options.threads[0], level))
    versions = ", ".join(dict.fromkeys(f"{w.name} {w.version}" for w in workers))
    rows, found, below = [], {}, []
    if keys:
        results, found = measure_cases(workers, keys, options.rounds)
        rows = [Row(CASES[key], results[first][key]) for key in keys]
        for level in lower:
            here = [Row(CASES[key], results[level][key]) for key in keys]
            below += lower_lines(level, here, first, rows)
    for worker in workers:
        worker.close()

    body = timed_lines(rows, found) + below if rows else []
    steps = [key for key in wanted if CASES[key].group == "training"]
    if "peak" in options.groups and steps:
        body += peak_lines(names, steps)
    if "fashion" in options.groups:
        body += fashion_lines(names, options.threads)
    if "footprint" in options.groups:
        body += footprint_lines(names, options.rounds)
    intro = intro_lines(options, versions, load)
    print("\n".join(intro + body))
    if options.write:
        page = ROOT / "docs" / f"{options.page}.md"
        picture = write_plot(page, group_ratios(rows, options.threads))
        text = "\n".join(intro + picture + body).rstrip() + "\n"
        page.write_text(text)


if __name__ == "__main__":
    main()
