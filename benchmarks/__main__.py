"""Measure taeda beside PyTorch.

Each framework runs in a process of its own. In every round each of them measures each case, taking
turns, so that a slow phase of the machine meets both. A round's figure is the fastest of several
loops, and a case's figure is the median over the rounds.

    python -m benchmarks                     # a table on the terminal
    python -m benchmarks --write             # and docs/performance.md
    python -m benchmarks --groups overhead --rounds 3
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import footprint
from benchmarks.cases import CASES

ROOT = Path(__file__).resolve().parents[1]
GROUPS = ["overhead", "memory", "compute", "training", "files", "footprint"]


class Worker:
    """A framework in its own process."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
        self.version = self._read()["version"]

    def _read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the {self.name} process died (see above)")
        return json.loads(line)

    def measure(self, case: str) -> dict:
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def seconds_text(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def bytes_text(count: float) -> str:
    return f"{count / 1e6:,.1f} MB"


def measure_cases(workers: list[Worker], keys: list[str], rounds: int) -> dict[str, dict]:
    """{case: {framework: seconds, or a text that says why there is no figure}}."""
    found = {key: {worker.name: [] for worker in workers} for key in keys}
    failed: dict[tuple[str, str], str] = {}
    for turn in range(rounds):
        for key in keys:
            for worker in workers if turn % 2 == 0 else reversed(workers):
                if (key, worker.name) in failed:
                    continue
                answer = worker.measure(key)
                if "error" in answer:
                    failed[key, worker.name] = answer["error"]
                    print(f"{worker.name}: {CASES[key].title}: {answer['error']}", file=sys.stderr)
                else:
                    found[key][worker.name].append(answer["seconds"])
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    return {
        key: {name: statistics.median(times) for name, times in row.items() if times}
        for key, row in found.items()
    }


def table(title: str, rows: list[tuple[str, dict[str, float]]], text) -> list[str]:
    lines = [f"## {title}", "", "| | taeda | PyTorch | PyTorch / taeda |", "|---|---:|---:|---:|"]
    for name, row in rows:
        ours, theirs = row.get("taeda"), row.get("torch")
        ratio = f"{theirs / ours:.2f}" if ours and theirs else "—"
        cells = (text(value) if value else "—" for value in (ours, theirs))
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio} |")
    return [*lines, ""]


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), "unknown")


def measure_footprint(names: list[str], rounds: int) -> list[str]:
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            times[name].append(footprint.import_seconds(name))
    imports = {name: statistics.median(t) for name, t in times.items()}
    sizes = {name: footprint.installed_bytes(name) for name in names}
    return [
        *table("Import", [("import in a fresh process", imports)], seconds_text),
        *table("Size", [("the installed package", sizes)], bytes_text),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="threads in each framework")
    parser.add_argument("--frameworks", nargs="+", choices=["taeda", "torch"])
    parser.add_argument("--write", action="store_true", help="replace docs/performance.md")
    options = parser.parse_args()

    names = options.frameworks or [
        name for name in ("taeda", "torch") if importlib.util.find_spec(name)
    ]
    load = os.getloadavg()[0]
    workers = [Worker(name, options.threads) for name in names]
    versions = ", ".join(f"{w.name} {w.version}" for w in workers)
    keys = [key for key, c in CASES.items() if c.group in options.groups]
    results = measure_cases(workers, keys, options.rounds)
    for worker in workers:
        worker.close()

    lines = [
        "# Performance",
        "",
        "Written by `python -m benchmarks --write`. A time is the median, over rounds in which the",
        "frameworks take turns, of the fastest loop in each round. A ratio above 1 means that taeda",
        "is faster (or smaller).",
        "",
        f"{versions}; Python {platform.python_version()}; {cpu_name()}, {os.cpu_count()} cores,",
        f"threads in each framework: {options.threads}; rounds: {options.rounds}; "
        f"{datetime.date.today()}.",
        f"Load average at the start: {load:.1f}. On a machine with other work to do, ratios are worth",
        "more than times.",
        "",
    ]
    for group in GROUPS[:-1]:
        rows = [(CASES[key].title, results[key]) for key in keys if CASES[key].group == group]
        if rows:
            lines += table(group.capitalize(), rows, seconds_text)
    if "footprint" in options.groups:
        lines += measure_footprint(names, options.rounds)
    text = "\n".join(lines)
    print(text)
    if options.write:
        (ROOT / "docs" / "performance.md").write_text(text.rstrip() + "\n")


if __name__ == "__main__":
    main()
