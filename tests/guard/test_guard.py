"""The guard device: no op, module or optimizer touches a device's memory but in its kernels."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard import plugin
from tests.guard.left_out import LEFT_OUT, LEFT_OUT_OF_FEW
from tests.guard.plugin import ROOT, compiled

# What continuous integration runs on the device, and how many tests of it pass there.
SAMPLE = {
    "autograd": (["tests/autograd"], 220),
    "func": (["tests/func", "tests/functional"], 150),
    "optim": (["tests/optim"], 400),
    "nn": ([f"tests/nn/test_{n}.py" for n in ("layers", "losses", "module", "packed")], 300),
    "ops": (
        [
            f"tests/ops/test_{n}.py"
            for n in ("creation", "gradients", "index", "join", "linalg", "random", "scatter")
        ],
        300,
    ),
    "files and loaders": (
        ["tests/test_serialization.py", "tests/test_stored_dtypes.py", "tests/data"],
        200,
    ),
}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The guard device, compiled once for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    file = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "guard.so"
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return file if file.exists() else compiled(Path(__file__).with_name("guard.cpp"), file)


def run(*args, **kwargs) -> subprocess.CompletedProcess:
    command = [sys.executable, *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **kwargs)


@pytest.mark.parametrize("tables", ["all", "few"])
@pytest.mark.parametrize(
    ("suite", "least"),
    [
        ("ops", 150),
        ("mixed", 50),
        ("places", 20),
        ("modules", 20),
        ("optimizers", 12),
        ("package", 7),
    ],
)
def test_everything_runs_on_it(library, suite, least, tables, monkeypatch):
    monkeypatch.setenv("GUARD_TABLES", tables)
    done = run("-m", "tests.guard.run", library, suite)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended in {lines[-1:]}: {done.stderr[-2000:]}"
    assert [line for line in lines if line.startswith("failed")] == []
    assert sum(line.startswith("ok") for line in lines) >= least
    warned = re.findall(r"(\w+)\(\): device 'guard' has no kernel for it", done.stderr)
    assert len(set(warned)) == len(warned)  # once for each op
    if suite in ("ops", "modules", "optimizers"):
        assert bool(warned) == (tables == "few")


def on_guard(library, *suites) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return run(
        *["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"],
        *["-p", "tests.guard.plugin", "--device", "guard", *suites],
        env={**environment, plugin.LIBRARY: str(library)},
    )


@pytest.mark.parametrize("suite", SAMPLE)
def test_suite_passes_on_it(library, suite):
    """What the tests of the CPU say about any device. The rest of them: docs/devices.md."""
    files, least = SAMPLE[suite]
    if not importlib.util.find_spec("torch"):
        least //= 2  # the others compare with PyTorch
    done = on_guard(library, *files)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= least


def test_suite_passes_where_most_falls_back(library):
    done = on_guard(library, "--guard-tables", "few", "tests/autograd", "tests/nn/test_layers.py")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 300


def test_what_is_left_out_exists():
    lists = [*LEFT_OUT.values(), *LEFT_OUT_OF_FEW.values()]
    names = [name for names in lists for name in names]
    assert len(set(names)) == len(names)
    for name in names:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text()
        for part in filter(None, test.split("::")):
            assert re.search(rf"^ *(def|class) {part}\b", text, re.MULTILINE), name


START = "import taeda; taeda.register_device('guard', {library!r}); "


@pytest.mark.unsanitized("the crash that it waits for would be a report")
@pytest.mark.parametrize("access", ["*p", "p.__setitem__(0, 1)"])
def test_access_by_the_host_is_caught(library, access):
    read = "import ctypes; x = taeda.ones(4, device='guard'); " + (
        "p = (ctypes.c_float * 4).from_address(x.data_ptr()); " + access.replace("*p", "p[0]")
    )
    assert run("-c", START.format(library=str(library)) + read).returncode == -11  # SIGSEGV


def test_missing_wait_is_caught(library, monkeypatch):
    monkeypatch.setenv("GUARD_FORGETS_TO_WAIT", "1")
    done = run("-m", "tests.guard.run", library, "modules")
    assert "failed Linear" in done.stdout


def test_missing_kernel_names_op_and_device(library, monkeypatch):
    monkeypatch.setenv("GUARD_TABLES", "few")
    code = START.format(library=str(library)) + (
        "x = taeda.ones(3, device='guard')\ntry: x.sort()\n"
        "except NotImplementedError as e: print(e)\n"
        "taeda.set_fallback('cpu')\nx.sort(); x.sort()\nprint(x.sort().values.device)"
    )
    done = run("-c", code)
    assert "sort(): device 'guard' has no kernel for it" in done.stdout
    assert done.stdout.endswith("guard:0\n")
    assert done.stderr.count("runs on the CPU") == 1


def test_a_refused_name_changes_nothing(library):
    code = f"import taeda\nfor name in (3, 'X y', 'cpu'):\n    try: taeda.register_device(name, {str(library)!r})\n"
    code += "    except (TypeError, ValueError): print('refused')\n"
    code += f"taeda.register_device('guard', {str(library)!r})\nprint(taeda.ones(2, device='guard').sum().item())"
    assert run("-c", code).stdout.split() == ["refused", "refused", "refused", "2.0"]


def test_one_kind_of_device(library):
    code = START.format(library=str(library)) + (
        f"\ntry: taeda.register_device('other', {str(library)!r})\n"
        "except RuntimeError as e: print(e)"
    )
    assert "'guard' is registered already" in run("-c", code).stdout
    done = run("-c", f"import taeda; taeda.register_device('cpu', {str(library)!r})")
    assert "ValueError" in done.stderr
    done = run("-c", "import taeda; taeda.register_device('x', taeda._C.__file__)")
    assert "has no function taeda_device" in done.stderr


def test_other_interface_is_refused(tmp_path):
    source = tmp_path / "old.cpp"
    source.write_text(
        '#include "kernels/device_plugin.h"\n'
        'extern "C" [[gnu::visibility("default")]] const taeda::DevicePlugin* taeda_device('
        "const taeda::DeviceHost&) {\n"
        "  static const taeda::DevicePlugin old{.interface = 0, .runtime = {}, .tables = {}};\n"
        "  return &old;\n"
        "}\n"
    )
    old = compiled(source, tmp_path / "old.so")
    done = run("-c", f"import taeda; taeda.register_device('old', {str(old)!r})")
    assert "was compiled for interface 0" in done.stderr
    assert done.returncode == 1
