"""Which instruction set is chosen; the tests of operations once more on the lower ones."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taeda import _C

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


def import_taeda(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Imports the C++ part alone in a new process, which prints the instruction set."""
    code = (
        "import importlib.util as u; s = u.spec_from_file_location('taeda._C', "
        f"{_C.__file__!r}); m = u.module_from_spec(s); s.loader.exec_module(m); "
        "print(m.cpu_level())"
    )
    outside = {k: v for k, v in os.environ.items() if k != "TAEDA_CPU"}
    return subprocess.run(
        [*command, sys.executable, "-c", code],
        env={**outside, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unknown_instruction_set_is_refused():
    run = import_taeda(TAEDA_CPU="avx2")
    assert run.returncode != 0
    assert "ImportError: TAEDA_CPU=avx2 is no instruction set; this machine has" in run.stderr


def test_an_empty_choice_is_none():
    assert import_taeda(TAEDA_CPU="").stdout == import_taeda().stdout != ""


emulated = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("qemu-x86_64"),
    reason="needs qemu-x86_64, which emulates older processors",
)


@pytest.mark.unsanitized("QEMU does not run sanitizers")
@emulated
def test_a_processor_below_v2_is_refused():
    run = import_taeda("qemu-x86_64", "-cpu", "core2duo")
    assert run.returncode == 1
    assert "ImportError: taeda needs an x86-64 processor of level v2" in run.stderr
    assert "lacks sse4.1, sse4.2, popcnt" in run.stderr


@pytest.mark.unsanitized("QEMU does not run sanitizers")
@emulated
@pytest.mark.parametrize("processor, level", [("Nehalem", "v2"), ("Haswell", "v3")])
def test_a_processor_runs_the_highest_set_it_has(processor, level):
    run = import_taeda("qemu-x86_64", "-cpu", processor)
    assert run.stdout == level + "\n", run.stderr


@pytest.mark.unsanitized("QEMU does not run sanitizers")
@emulated
def test_a_set_beyond_the_processor_gives_a_warning():
    run = import_taeda("qemu-x86_64", "-cpu", "Nehalem", TAEDA_CPU="v3")
    assert run.stdout == "v2\n", run.stderr
    assert "TAEDA_CPU=v3 is beyond this machine, which has v2; using v2" in run.stderr
