"""`pytest -p tests.guard.plugin --device guard -n 2 tests/ops`: a suite on the guard device.

Tensors that a test makes are the device's by default; those that come from NumPy or PyTorch are
moved there, and `numpy()` copies back. A test that touches the device's memory outside of a kernel
ends its worker, which pytest-xdist reports as that test's failure. What a test of the CPU alone
is, tests/guard/left_out.py says.

With `--device cuda` it is CUDA's, where there is a GPU; what the library lacks runs on the CPU.

With `--guard-tables few` the guard device has the tables that a new one begins with. What it lacks runs
on the CPU, as `taeda.set_fallback("cpu")` asks for.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import taeda
from tests.guard.left_out import reason_for

DEVICE: str | None = None  # of this run
LIBRARY = "TAEDA_GUARD_LIBRARY"
ROOT = Path(__file__).resolve().parents[2]


def compiled(source: Path, to: Path) -> Path:
    """A device, compiled as a user would compile one: against the headers, linked to nothing."""
    cxx = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if cxx is None:
        pytest.skip("no C++ compiler")
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"]
    subprocess.run([cxx, *flags, f"-I{ROOT / 'csrc'}", source, "-o", to], check=True)
    return to


def pytest_addoption(parser):
    parser.addoption("--device", choices=["guard", "cuda"], help="run the tests on this device")
    parser.addoption(
        "--guard-tables", choices=["all", "few"], default="all", help="which kernels it has"
    )


def pytest_configure(config):
    global DEVICE
    DEVICE = config.getoption("--device")
    if DEVICE is None:
        return
    if DEVICE == "guard":
        register_guard(config)
    taeda.set_default_device(DEVICE)
    if has_few_tables(config):
        taeda.set_fallback("cpu")
        config.addinivalue_line("filterwarnings", "ignore:.* has no kernel for it")
    move_at_the_borders()
    if DEVICE == "cuda":
        taeda.backends.cudnn.allow_tf32 = False  # results are compared with the CPU's
        draw_on_the_cpu()


def register_guard(config) -> None:
    if LIBRARY not in os.environ:  # pytest-xdist's workers get the controller's
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        source = Path(__file__).with_name("guard.cpp")
        os.environ[LIBRARY] = str(compiled(source, Path(folder.name, "guard.so")))
        config.add_cleanup(lambda: os.environ.pop(LIBRARY))
    os.environ["GUARD_TABLES"] = config.getoption("--guard-tables")
    taeda.register_device("guard", os.environ[LIBRARY])


def has_few_tables(config) -> bool:
    return config.getoption("--device") == "cuda" or config.getoption("--guard-tables") == "few"


def pytest_collection_modifyitems(config, items):
    if config.getoption("--device") is None:
        return
    cuda = config.getoption("--device") == "cuda"
    out = {item for item in items if reason_for(item.nodeid, has_few_tables(config), cuda)}
    config.hook.pytest_deselected(items=list(out))
    items[:] = [item for item in items if item not in out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A test that sets the default device may leave the CPU behind."""
    if item.config.getoption("--device") is not None:
        taeda.set_default_device(DEVICE)


def move_at_the_borders() -> None:
    """What shares memory with NumPy and others copies to the device, or from it."""
    for name in ("from_numpy", "from_dlpack", "as_tensor", "asarray", "frombuffer"):
        setattr(taeda, name, to_device(getattr(taeda, name)))
    for name in ("numpy", "__array__", "__dlpack__", "__dlpack_device__"):
        setattr(taeda.Tensor, name, from_device(getattr(taeda.Tensor, name)))


def draw_on_the_cpu() -> None:
    """Seeds give the CPU's numbers, which tests expect; those of CUDA have tests of their own."""
    made = "rand randn randint randperm normal rand_like randn_like randint_like"
    for name in [*made.split(), "bernoulli", "multinomial", "poisson"]:
        setattr(taeda, name, drawn(getattr(taeda, name)))
    for name in ("bernoulli", "multinomial"):
        setattr(taeda.Tensor, name, drawn(getattr(taeda.Tensor, name)))
    filled = "uniform_ normal_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_"
    for name in filled.split():
        setattr(taeda.Tensor, name, drawn_in_place(getattr(taeda.Tensor, name)))


def on_cpu(argument):
    return argument.cpu() if isinstance(argument, taeda.Tensor) else argument


def drawn(function):
    @functools.wraps(function)
    def draw(*args, device=None, out=None, **kwargs):
        own = device is None or (taeda.device(device).type == DEVICE and "generator" in kwargs)
        if not own or out is not None:
            given = {"device": device, "out": out}
            kwargs |= {name: value for name, value in given.items() if value is not None}
            return function(*args, **kwargs)
        wants = kwargs.pop("requires_grad", False)
        with taeda.device("cpu"):
            made = function(*map(on_cpu, args), **{k: on_cpu(v) for k, v in kwargs.items()})
        return made.to(DEVICE).requires_grad_(wants) if wants else made.to(DEVICE)

    return draw


def drawn_in_place(method):
    @functools.wraps(method)
    def draw(self, *args, **kwargs):
        if self.device.type != DEVICE:
            return method(self, *args, **kwargs)
        with taeda.no_grad():
            drawn = method(self.detach().cpu(), *map(on_cpu, args), **kwargs)
        return self.copy_(drawn)

    return draw


def to_device(function):
    @functools.wraps(function)
    def moved(*args, **kwargs):
        made = function(*args, **kwargs)
        return made if kwargs.get("device") else made.to(DEVICE)

    return moved


def from_device(method):
    @functools.wraps(method)
    def copied(self, *args, **kwargs):
        return method(self.cpu() if self.device.type == DEVICE else self, *args, **kwargs)

    return copied
