"""What was measured last, which docs/accuracy.md shows, and the bounds that its test makes of it."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import levels
from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.page import Found
from benchmarks.accuracy.ulps import Summary

PATH = Path(__file__).with_name("figures.json")
MARGIN = 1.3  # the test takes other numbers of the same kind, and libraries change
LEAST = 0.51  # of a result that is rounded once
LIBRARY = 4.0  # a further margin for what OpenBLAS computes, by other kernels on other machines


def short(value: float) -> float:
    return float(f"{value:.3g}")


def write(found: Found) -> None:
    """A line for each row, in the order of the rows: {framework: {level: [largest, mean]}}."""
    table: dict[str, dict[str, dict[str, list[float]]]] = {}
    for (key, name, level), errors in found.items():
        row = table.setdefault(key, {}).setdefault(name, {})
        row[level] = [short(errors.largest), short(errors.mean)]
    lines = [f"  {json.dumps(key)}: {json.dumps(table[key])}" for key in CASES if key in table]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read() -> Found:
    """{(row, framework, level): errors} of the rows that there are still."""
    table = json.loads(PATH.read_text()) if PATH.exists() else {}
    return {
        (key, name, level): Summary(*errors)
        for key in CASES
        for name, row in table.get(key, {}).items()
        for level, errors in row.items()
    }


def bound(largest: float, key: str) -> float:
    """What the test allows where this was measured."""
    return max(LEAST, MARGIN * largest * (LIBRARY if key.startswith("linear algebra") else 1))


def bounds(found: Found, capability: str) -> dict[str, float]:
    """For the instruction set that frameworks call so; elsewhere the largest of all."""
    known = [level for level, name in levels.CAPABILITIES.items() if name == capability]
    result: dict[str, float] = {}
    for (key, name, level), errors in found.items():
        if name == "taeda" and level in (known or levels.CAPABILITIES):
            result[key] = max(result.get(key, 0), bound(errors.largest, key))
    return result
