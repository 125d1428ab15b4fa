"""The package as it is installed: what importing it costs, and what a wheel of it holds."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numpy", "scipy", "matplotlib", "tqdm", "safetensors", "torch"}


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy():
    loaded = json.loads(fresh("import taeda, sys, json; print(json.dumps(list(sys.modules)))"))
    assert not HEAVY & set(loaded)


def test_package_is_pickled_by_its_name():
    """Functions that are sent to other processes bring the modules that they use."""
    assert pickle.loads(pickle.dumps(taeda)) is taeda


def test_version_is_written_once():
    scope: dict[str, str] = {}
    exec((ROOT / "python" / "taeda" / "_version.py").read_text(), scope)
    assert taeda.__version__ == scope["__version__"]


def test_module_is_taken_from_one_place():
    """The extension lies inside the package that is imported."""
    module = importlib.util.find_spec("taeda._C")
    assert Path(module.origin).name.startswith("_C.")


@pytest.fixture(scope="module")
def installed() -> list[importlib.metadata.PackagePath]:
    try:
        distribution = importlib.metadata.distribution("taeda")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("taeda runs from the source tree here, not from a wheel")
    files = distribution.files or []
    if not any(f.match("taeda/__init__.py") for f in files):
        pytest.skip("taeda is installed as editable here, not from a wheel")
    return files


def test_wheel_contents(installed):
    names = {str(f) for f in installed if "__pycache__" not in f.parts}
    source = ROOT / "python"
    wanted = {
        str(p.relative_to(source))
        for p in source.rglob("*")
        if p.is_file() and p.suffix in {".py", ".pyi", ".typed", ".txt", ".h", ".cmake"}
    }
    folders = [ROOT / "csrc" / n for n in ("base", "kernels", "tensor")]
    wanted |= {
        f"taeda/include/device/{p.relative_to(ROOT / 'csrc')}"
        for folder in folders
        for p in folder.rglob("*.h")
        if not {"cpu", "cuda"} & set(p.relative_to(folder).parts)
    }
    assert wanted <= names
    extensions = [n for n in names if n.endswith(".so")]
    assert len(extensions) == 1 and extensions[0].startswith("taeda/_C.")
    extra = {n for n in names - wanted - set(extensions) if ".dist-info/" not in n}
    assert not extra
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_installed_size(installed):
    total = sum(Path(f.locate()).stat().st_size for f in installed if Path(f.locate()).exists())
    assert total < 40_000_000


def test_extension_finds_openblas_beside_itself(installed):
    extension = next(f for f in installed if str(f).endswith(".so"))
    content = Path(extension.locate()).read_bytes()
    assert b"$ORIGIN/../scipy_openblas32/lib" in content
    assert b"pip-build-env" not in content


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="x86-64 only")
@pytest.mark.parametrize("level", ["v2", "v3"])
def test_runs_on_lower_instruction_sets(level):
    code = "import taeda; print(taeda.arange(80.).exp().log().sum().item())"
    environment = {**os.environ, "TAEDA_CPU": level}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert float(out) == pytest.approx(3160.0, rel=1e-5)
