"""Tensors without memory in every op, in a process of their own: no crash, no strange errors."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_absent_minded_classes_do_not_crash(campaign):
    command = [sys.executable, "-m", "tests.robustness.wrapped", str(12 * campaign)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-2000:]}"
    tried, succeeded, wrong = map(int, re.findall(r"\d+", done.stdout.rpartition(":")[2]))
    assert wrong == 0 and succeeded > tried // 10
