"""Rounds in which the frameworks take turns, each in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import levels, limits
from benchmarks.cases import CASES
from benchmarks.report import Limits, Times

ROOT = Path(__file__).resolve().parents[1]


class Worker:
    """A framework on a number of threads, held to an instruction set, in a process of its own.

    A thread that is new, as after a change, may share the first one's core for a while.
    """

    def __init__(self, name: str, threads: int, level: str = levels.OWN) -> None:
        self.name = name
        self.threads = threads
        self.level = level
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **levels.environment(level)},
        )
        started = self._read()
        self.version = started["version"]
        if reason := levels.wrong(level, started["capability"]):
            raise SystemExit(f"{name}: {reason}")

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


def measure_round(workers: list[Worker], keys: list[str], failed: set) -> dict[tuple, float]:
    """{(level, case, framework, threads): seconds}; what fails is left out from then on."""
    found = {}
    for key in keys:
        for worker in workers:
            at = (worker.level, key, worker.name, worker.threads)
            if at in failed:
                continue
            answer = worker.measure(key)
            if "error" in answer:
                failed.add(at)
                print(f"{worker.name}: {CASES[key].title}: {answer['error']}", file=sys.stderr)
            else:
                found[at] = answer["seconds"]
    return found


def measure_cases(
    workers: list[Worker], keys: list[str], rounds: int
) -> tuple[dict[str, dict[str, Times]], dict[int, Limits]]:
    """Medians over the rounds: {level: {case: times}}, and the limits for each thread count."""
    threads = sorted({worker.threads for worker in workers})
    times: dict[tuple, list[float]] = {}
    bandwidths: dict[int, list[float]] = {count: [] for count in threads}
    rates: dict[int, list[float]] = {count: [] for count in threads}
    failed: set[tuple] = set()
    for turn in range(rounds):
        for count in threads:
            bandwidths[count].append(limits.copy_bandwidth(count))
            rates[count].append(limits.fma_rate(count) or 0.0)
        order = workers if turn % 2 == 0 else workers[::-1]
        for at, seconds in measure_round(order, keys, failed).items():
            times.setdefault(at, []).append(seconds)
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    results: dict[str, dict[str, Times]] = {w.level: {key: {} for key in keys} for w in workers}
    for (level, key, name, count), seconds in times.items():
        results[level][key][name, count] = statistics.median(seconds)
    return results, {
        count: Limits(statistics.median(bandwidths[count]), statistics.median(rates[count]))
        for count in threads
    }
