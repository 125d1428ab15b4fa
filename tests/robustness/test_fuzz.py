"""Odd arguments for every op, in a process of their own: no crash, no hang, clear errors."""

import subprocess
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("kind", "count"), [("random", 66), ("spoilt", 150), ("indexing", 3000)])
def test_no_arguments_crash(kind, count, campaign):
    command = [sys.executable, "-m", "tests.robustness.fuzz", kind, str(count * campaign)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-2000:]}"
    print(done.stdout)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("f", "lacks"),
        ("f) -> (", "lacks"),
        ("f(x: Tensor -> Tensor", "lacks"),
        (")f( -> Tensor", "lacks"),
        ("f(x) -> Tensor", "no type"),
        ("f(x=1: int) -> Tensor", "no type"),
        ("f(x: Tensor) -> (Tensor", "lacks"),
        ("f(x: int[2000000000] = 1) -> Tensor", "elements"),
        ("f(x: int[-1] = 1) -> Tensor", "elements"),
        ("f(x: int[] = [1) -> Tensor", "is no list|lacks"),
        ("f(x: int = 99999999999999999999) -> Tensor", "no number"),
        ("f(x: str = ) -> Tensor", "quotes"),
        ("f(x: str = ') -> Tensor", "quotes|lacks"),
        ("f(x: str = a) -> Tensor", "quotes"),
        ("f(x: bool = 1) -> Tensor", "no bool"),
        ("f(x: Thing) -> Tensor", "unknown type"),
    ],
)
def test_malformed_schemas(schema, words):
    with pytest.raises(RuntimeError, match=f"^schema.*({words})"):
        taeda._C._define_op(schema, "", print)


ATHERIS = subprocess.run([sys.executable, "-c", "import atheris"], capture_output=True, check=False)
TARGETS = [
    *("zip", "legacy", "pickle", "tar", "safetensors", "safetensors-header", "npy", "npz"),
    *("schema", "core-schema", "einsum", "device", "type"),
]


@pytest.mark.skipif(ATHERIS.returncode != 0, reason="Atheris is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_fuzzers_find_nothing_at_once(target, tmp_path):
    options = ["-runs=2000", "-seed=1", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, "-m", "tests.robustness.fuzzers", target, *options]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0 and b"Done 2" in done.stderr, done.stderr[-3000:].decode()
