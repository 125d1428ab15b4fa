"""Measure the errors of taeda's kernels, and PyTorch's, beside references of more digits.

    python -m benchmarks.accuracy                  # tables on the terminal
    python -m benchmarks.accuracy --write          # and docs/accuracy.md, and the figures for its test
    python -m benchmarks.accuracy --rows softmax   # rows whose names have the word; --write them alone
    python -m benchmarks.accuracy --cpu v3         # held to this instruction set alone

Every framework runs once for each instruction set, in a process of its own. Needs mpmath.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np

from benchmarks import levels
from benchmarks.accuracy import figures, page
from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.page import Found
from benchmarks.accuracy.table import Arrays
from benchmarks.accuracy.ulps import Summary, summary
from benchmarks.report import NAMES
from benchmarks.rounds import ROOT


class Worker:
    """A framework held to an instruction set, in a process of its own."""

    def __init__(self, name: str, level: str) -> None:
        self.name, self.level = name, level
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.accuracy.worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **levels.environment(level)},
        )
        started = self._read()
        self.version = started["version"]
        if reason := levels.wrong(level, started["capability"]):
            raise SystemExit(f"{name}: {reason}")

    def _read(self) -> dict[str, str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the {self.name} process died (see above)")
        return json.loads(line)

    def errors(self, key: str, inputs: Arrays) -> Summary:
        assert self.process.stdin is not None
        self.process.stdin.write(key + "\n")
        self.process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise SystemExit(f"{self.name}, {self.level}: {key}: {answer['error']}")
        with np.load(answer["path"]) as arrays:
            found = tuple(arrays[f"arr_{i}"] for i in range(len(arrays.files)))
        return summary(CASES[key].judge(inputs, found))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(workers: list[Worker], keys: list[str]) -> Found:
    """{(row, framework, level): errors}"""
    found: Found = {}
    for key in keys:
        inputs = CASES[key].made()
        for worker in workers:
            found[key, worker.name, worker.level] = errors = worker.errors(key, inputs)
            name = f"{worker.name} {worker.level}"
            print(f"{key:80s} {name:10s} {page.number(errors.largest)}", file=sys.stderr)
    return found


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--rows", default="", help="a part of the names of the rows to measure")
    parser.add_argument(
        "--cpu", nargs="+", choices=list(levels.ENVIRONMENTS), default=list(levels.ENVIRONMENTS)
    )
    parser.add_argument("--frameworks", nargs="+", choices=list(NAMES))
    parser.add_argument(
        "--write", action="store_true", help="replace the figures and docs/accuracy.md"
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    names = options.frameworks or [name for name in NAMES if importlib.util.find_spec(name)]
    keys = [key for key in CASES if options.rows in key]
    workers = [Worker(name, level) for name in names for level in options.cpu]
    found = measure(workers, keys)
    versions = ", ".join(dict.fromkeys(f"{NAMES[w.name]} {w.version}" for w in workers))
    for worker in workers:
        worker.close()
    print(page.text(found, options.cpu, versions))
    if options.write:
        every = {**figures.read(), **found}
        figures.write(every)
        text = page.text(figures.read(), list(levels.ENVIRONMENTS), versions)
        (ROOT / "docs" / "accuracy.md").write_text(text)


if __name__ == "__main__":
    main()
