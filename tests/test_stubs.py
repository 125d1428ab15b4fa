"""The type stubs say what the operations are, and a type checker finds no fault with using them."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import taeda
from tests.stubs import generate, typical_lines, user_script

ROOT = Path(__file__).resolve().parents[1]
STUBS = generate.stubs()


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.name)
def test_stubs_are_up_to_date(path):
    """An op was added or changed: run `python -m tests.stubs` and commit what it writes."""
    assert path.exists() and path.read_text() == STUBS[path], "run: python -m tests.stubs"


def test_every_public_operation_has_a_typed_signature():
    text = STUBS[generate.PACKAGE / "_ops.pyi"]
    for name in generate.operations():
        assert f"\ndef {name}(" in text
    assert "Any" not in text


@pytest.mark.parametrize(
    "name", ["Tensor", "UntypedStorage", "Generator", "Size", "dtype", "device"]
)
def test_every_attribute_of_a_class_is_in_the_stub(name):
    text = STUBS[generate.PACKAGE / "_C.pyi"]
    body = re.search(rf"\nclass {name}\b.*?(?=\n\S)", text, re.DOTALL)[0]
    for attribute in vars(getattr(taeda, name)):
        if not attribute.startswith("__"):
            found = f"    def {attribute}(" in body or f"    {attribute}:" in body
            assert found, f"{attribute}: add it to tests/stubs/core.pyi"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("f(self: Tensor, dim: int = 0) -> Tensor", "(input: Tensor, dim: _int = 0) -> Tensor"),
        ("f(size: int[]) -> Tensor", "(*size: _int) -> Tensor"),
        ("f(self: Tensor, k: int[2]? = None) -> None", "k: _int | Sequence[_int] | None = None"),
        ("f(self: Tensor) -> (Tensor, Tensor)", "-> tuple[Tensor, Tensor]"),
    ],
)
def test_signatures(schema, expected):
    class FakeOp:
        overloads = [schema]
        _forms = [{"schema": schema, "out": False, "factory": False, "numbers": False}]

    assert expected in generate.operation("f", FakeOp)


def test_defaults_are_those_of_the_op():
    parameters = inspect.signature(taeda.softmax).parameters
    assert parameters["dtype"].default is None


def test_user_script_runs():
    assert user_script.main() > 0.8


def test_typical_lines_run(tmp_path):
    typical_lines.main(tmp_path)


SCRIPTS = sorted((ROOT / "tests" / "stubs").glob("[!_g]*.py"))
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


@pytest.mark.unsanitized("runs another program")
@pytest.mark.parametrize("script", SCRIPTS + EXAMPLES, ids=lambda path: path.name)
def test_mypy_accepts(script, tmp_path):
    """In `mistakes.py` every mistake is marked, and a mark without a mistake is an error."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}"]
    command += ["--config-file=", "--follow-imports=silent", str(script)]
    if script in EXAMPLES:  # what a module gives when it is called may be anything
        command += ["--no-warn-return-any", "--ignore-missing-imports"]
    environment = {"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.unsanitized("runs another program")
def test_pyright_accepts(tmp_path):
    """The same of pyright, which finds a mistake where each is marked, and none elsewhere."""
    pytest.importorskip("basedpyright", reason="needs pyright, as it is on PyPI as a whole")
    config = {
        "extraPaths": [str(ROOT / "python")],
        "enableTypeIgnoreComments": False,
        "typeCheckingMode": "standard",
        "reportPossiblyUnboundVariable": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    for script in SCRIPTS + EXAMPLES:
        (tmp_path / script.name).write_text(script.read_text())
    command = [sys.executable, "-m", "basedpyright", "--project", str(tmp_path), "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = {
        (Path(d["file"]).name, d["range"]["start"]["line"])
        for d in json.loads(done.stdout)["generalDiagnostics"]
        if d["severity"] == "error"
    }
    marked = {
        (script.name, i)
        for script in SCRIPTS
        for i, line in enumerate(script.read_text().splitlines())
        if "# type: ignore" in line
    }
    assert found == marked, done.stdout
