"""Odd arguments for every op, in a process of their own: no crash, no hang, clear errors."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("kind", "count"), [("random", 8), ("spoilt", 20), ("indexing", 600)])
def test_no_arguments_crash(kind, count):
    command = [sys.executable, "-m", "tests.robustness.fuzz", kind, str(count)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-2000:]}"
