"""Programs in PyTorch's idiom print the same on taeda, under its command, and on PyTorch."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "docs" / "examples" / "torch_programs").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d+")


def printed(program: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command, str(program)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_ten():
    assert len(PROGRAMS) == 10


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_same_losses(program):
    assert "taeda" not in program.read_text(), "the programs know of PyTorch only"
    ours = printed(program, "-m", "taeda.torch")
    assert len(NUMBER.findall(ours)) >= 4
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed to compare with")
    theirs = printed(program)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
        assert float(a) == pytest.approx(float(b), rel=0.01, abs=0.01), (ours, theirs)
