"""Every program under docs/examples runs, without a warning, and reaches what it promises."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def run(script: Path, folder: Path, *arguments: str) -> str:
    """What the script prints, run in `folder` with warnings as errors."""
    environment = {**os.environ, "MPLCONFIGDIR": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested():
    tested = re.findall(r'EXAMPLES / "(\w+\.py)"', Path(__file__).read_text())
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(tested)


def test_log_mean_gradient(tmp_path):
    assert run(EXAMPLES / "log_mean_gradient.py", tmp_path).splitlines() == [
        "tensor([[0.1343, 0.0868, 0.7535, 0.5049, 0.2169],",
        "        [0.1051, 0.1360, 0.0744, 0.1463, 0.1054],",
        "        [0.1911, 0.1660, 2.9861, 0.3948, 0.2268]])",
    ]


def test_modules_guide(tmp_path):
    output = run(EXAMPLES / "modules_guide.py", tmp_path)
    left = float(re.search(r"mean \|output\| after \d+ steps: ([\d.]+)", output)[1])
    assert left < 0.05
    assert "['', 'l1', 'net', 'net.l0', 'net.l1']" in output
    assert "(l1): MyLinear()\n  (net): Net(\n    (l0): MyLinear()" in output
    assert "<All keys matched successfully>" in output
    assert "['before', 'after', 'gradient']" in output


def test_bce_training_loop(tmp_path):
    output = run(EXAMPLES / "bce_training_loop.py", tmp_path)
    assert "before backward: grad is None" in output
    assert "after zero_grad: grad is None" in output
    assert float(re.search(r"accuracy after 200 epochs: ([\d.]+)%", output)[1]) >= 99


def test_sine_regression(tmp_path):
    output = run(EXAMPLES / "sine_regression.py", tmp_path)
    assert float(re.search(r"on 200 new points: ([\d.]+)", output)[1]) < 0.002
    assert (tmp_path / "sine.png").stat().st_size > 5_000


def test_digits(tmp_path):
    output = run(EXAMPLES / "digits.py", tmp_path)
    assert "1438 images to learn from, 359 held out" in output
    here, there = re.search(
        r"test accuracy ([\d.]+)%; digits.pt loaded in a new process: ([\d.]+)%", output
    ).groups()
    assert here == there
    assert float(here) >= 97
    assert (tmp_path / "digits.png").stat().st_size > 5_000
    assert len(re.findall(r"^epoch +\d+/15  loss", output, re.MULTILINE)) == 15


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="compares with PyTorch")
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("log_mean_gradient.py", []),
        ("modules_guide.py", []),
        ("bce_training_loop.py", []),
        ("sine_regression.py", ["--epochs", "50"]),
        ("digits.py", ["--epochs", "2"]),
    ],
)
def test_same_script_on_pytorch(script, arguments, tmp_path):
    """With the name replaced, PyTorch prints the same text and nearly the same numbers."""
    port = tmp_path / script
    port.write_text(re.sub(r"\btaeda\b", "torch", (EXAMPLES / script).read_text()))
    (tmp_path / "data").symlink_to(EXAMPLES / "data")
    number = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")
    ours = run(EXAMPLES / script, tmp_path, *arguments)
    theirs = re.sub(r"\btorch\b", "taeda", run(port, tmp_path, *arguments))
    assert number.sub("#", ours).split() == number.sub("#", theirs).split()
    for a, b in zip(number.findall(ours), number.findall(theirs), strict=True):
        assert float(a) == pytest.approx(float(b), rel=0.02, abs=0.02)
