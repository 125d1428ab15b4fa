"""The tests of operations once more, on the kernels for lower instruction sets."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_KERNELS = [
    "tests/ops",
    "tests/nn/test_resize.py",
    "tests/nn/test_sampling.py",
    "tests/test_stored_dtypes.py",
]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="has one instruction set")
@pytest.mark.skipif("TAEDA_CPU" in os.environ, reason="an instruction set is forced already")
@pytest.mark.parametrize("level", ["v2", "v3"])
def test_operations(level: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITH_KERNELS]
    environment = {**os.environ, "TAEDA_CPU": level}
    run = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
