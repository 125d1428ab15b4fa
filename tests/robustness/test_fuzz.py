"""Odd arguments for every op, in a process of their own: no crash, no hang, clear errors."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("kind", "count"), [("random", 66), ("spoilt", 150), ("indexing", 3000)])
def test_no_arguments_crash(kind, count, campaign):
    command = [sys.executable, "-m", "tests.robustness.fuzz", kind, str(count * campaign)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-2000:]}"
    print(done.stdout)
