"""CONTRIBUTING's walk-throughs, carried out: their code is added to a copy of the tree and built.

The copy takes every object that does not depend on the added code from a build of this checkout
(build/editable, build/dev, or where SKBUILD_BUILD_DIR points). The others are compiled with little
optimization, and for one instruction set.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# The instruction set that the copy is tried on; elsewhere than on x86-64 there is one, "base".
LEVEL = "v2"

# ---- what CONTRIBUTING says ----

SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:cpp|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^(?://|#) ((?:csrc|python)/\S+)\n", re.MULTILINE)
LIST = re.compile(r"^using \w+ =\s+List<[\w\s,]+(?=>;)", re.MULTILINE)

# How many files each kind of op is written in.
FILES = {
    "A pointwise op": 1,
    "A composite op": 1,
    "A view": 1,
    "A reduction": 2,
    "A structured op": 2,
    "An optimizer": 2,
}


@functools.cache
def walkthroughs() -> dict[str, dict[str, str]]:
    """Files and their code, by the kind of op."""
    found: dict[str, dict[str, str]] = {}
    for title, text in SECTION.findall((ROOT / "CONTRIBUTING.md").read_text()):
        for block in BLOCK.findall(text):
            pieces = FILE.split(block)[1:]  # a block may hold several files
            found.setdefault(title.split(":")[0], {}).update(
                zip(pieces[::2], pieces[1::2], strict=True)
            )
    return {kind: files for kind, files in found.items() if files}


def test_an_op_is_written_in_few_files():
    assert {kind: len(files) for kind, files in walkthroughs().items()} == FILES


def add(path: Path, code: str) -> None:
    """A new file; or a struct before the last list of an old one, and its name in the list."""
    if path.exists():
        text = path.read_text()
        last = list(LIST.finditer(text))[-1]
        names = ", ".join(re.findall(r"^struct (\w+)", code, re.MULTILINE))
        code = f"{text[: last.start()]}{code}\n{last[0]}, {names}{text[last.end() :]}"
    path.write_text(code)


# ---- the build ----

INCLUDE = re.compile(r'^#include "(\S+)"', re.MULTILINE)
# The module's objects; those of a target's precompiled headers (.gch) are none.
OBJECTS = re.compile(r"/(core|kernels|lapack|_C|nanobind[\w-]*|simd_\w+)\.dir/.*\.o$")


class Object:
    """An object of the build: where it is, and how it was compiled."""

    def __init__(self, build: Path, entry: dict[str, str]):
        self.source = Path(entry["file"])
        self.words = shlex.split(entry["command"])
        self.path = build / self.words[self.words.index("-o") + 1]
        self.level = re.search(r"/simd_(v\d|base)", str(self.path))
        # Several files may be compiled as one, which includes them by their whole paths.
        united = re.search(r"/(core|kernels|lapack)\.dir/Unity/", str(self.source))
        self.text = self.source.read_text() if united else ""
        self.files = [Path(name) for name in INCLUDE.findall(self.text)] or [self.source]

    def source_in(self, copy: Path) -> Path:
        """The same source in a copy of the tree."""
        if not self.text:
            return copy / self.source.relative_to(ROOT)
        united = copy / self.source.name
        united.write_text(self.text.replace(str(ROOT), str(copy)))
        return united

    def compile(self, source: Path, output: Path, csrc: Path) -> None:
        """The same for a source of the copy."""
        words = iter(self.words)
        command = []
        for word in words:
            if word in {"-include", "-MF", "-MT", "-o", "-c"}:  # "-include": precompiled headers
                next(words)
            elif word not in {"-MD", "-Winvalid-pch", "-Werror"}:
                word = re.sub(r"^-O\d$", "-O1" if self.level else "-O0", word)
                command.append(word.replace(str(ROOT / "csrc"), str(csrc)))
        subprocess.run([*command, "-c", source, "-o", output], cwd=output.parent, check=True)


@functools.cache
def build_folder() -> Path | None:
    """A build of this checkout."""
    for folder in (os.environ.get("SKBUILD_BUILD_DIR"), "build/editable", "build/dev"):
        commands = ROOT / (folder or ".") / "compile_commands.json"
        if commands.exists() and str(ROOT / "csrc") in commands.read_text():
            return commands.parent
    return None


def headers(source: Path, csrc: Path, known: dict[Path, set[Path]]) -> set[Path]:
    """The files of the copy that a source includes, however far down."""
    if source not in known:
        known[source] = set()
        for name in INCLUDE.findall(source.read_text()):
            for header in (csrc / name, source.parent / name):
                if header.exists():
                    known[source] |= {header, *headers(header, csrc, known)}
    return known[source]


def build_copy(folder: Path, build: Path) -> None:
    """A copy of the tree with the code of the walk-throughs, and its module."""
    for part in ("csrc", "python", "tests/stubs"):
        ignored = shutil.ignore_patterns("__pycache__", "_C*.so")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    added = {
        folder / name: code for files in walkthroughs().values() for name, code in files.items()
    }
    for path, code in added.items():
        path.parent.mkdir(exist_ok=True)
        add(path, code)

    csrc = folder / "csrc"
    known: dict[Path, set[Path]] = {}

    def is_current(o: Object, source: Path) -> bool:
        used = {path for path in (source, *headers(source, csrc, known)) if csrc in path.parents}
        made = o.path.stat().st_mtime
        return not used & added.keys() and all(
            (ROOT / path.relative_to(folder)).stat().st_mtime <= made for path in used
        )

    entries = json.loads((build / "compile_commands.json").read_text())
    objects = [o for o in (Object(build, e) for e in entries) if OBJECTS.search(str(o.path))]
    links: list[Path] = []
    work: list[tuple[Object, Path]] = []
    for o in objects:
        tried = not o.level or o.level[1] in {LEVEL, "base"}
        ours = o.files[0].is_relative_to(ROOT / "csrc")
        if not ours or not tried or is_current(o, o.source_in(folder)):
            links.append(o.path)
        else:
            work.append((o, o.source_in(folder)))
    for path in added:
        if path.suffix == ".cpp":  # compiled as its neighbours are
            place = ROOT / path.parent.relative_to(folder)
            like = next(o for o in objects if place in {file.parent for file in o.files})
            work.append((like, path))

    outputs = [folder / f"{i}.o" for i in range(len(work))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(o.compile, source, output, csrc)
            for (o, source), output in zip(work, outputs, strict=True)
        ]
        for job in jobs:
            job.result()

    import scipy_openblas32

    blas = Path(scipy_openblas32.get_lib_dir())
    module = folder / "python" / "taeda" / next(build.glob("_C*.so")).name
    compiler = next(word for word in objects[0].words if not word.endswith("ccache"))
    libraries = [blas / "libscipy_openblas.so", f"-Wl,-rpath,{blas}", "-ldl", "-lpthread"]
    subprocess.run([compiler, "-shared", "-o", module, *links, *outputs, *libraries], check=True)


# ---- the ops ----

TRIALS = """
import taeda
from taeda.autograd import gradcheck, gradgradcheck


def same(a, b):
    taeda.testing.assert_close(a, b)


def has_gradients(f, *inputs):
    assert gradcheck(f, inputs) and gradgradcheck(f, inputs)


taeda.manual_seed(0)
x = taeda.randn(3, 5, dtype=taeda.float64, requires_grad=True)
values = x.detach()

# a pointwise op
expected = ((values * values + 1).sqrt() - 1) / 2 + values
same(taeda.bent_identity(values), expected)
same(values.float().bent_identity(), expected.float())
same(values.half().bent_identity(), expected.half())
same(values.clone().bent_identity_(), expected)
out = taeda.empty(3, 5, dtype=taeda.float64)
assert taeda.bent_identity(values, out=out) is out
same(out, expected)
has_gradients(taeda.bent_identity, x)
same(taeda.vmap(taeda.bent_identity)(values), expected)
assert "sqrt(x^2 + 1)" in taeda.bent_identity.__doc__

# a composite op
expected = (values - values.mean(1, True)) / (values.var(1, correction=0, keepdim=True) + 1e-3).sqrt()
same(taeda.standardize(values, 1, eps=1e-3), expected)
has_gradients(lambda x: taeda.standardize(x, -1), x)
assert "variance 1" in taeda.Tensor.standardize.__doc__

# a view
v = x[1]
assert taeda.as_column(v).shape == (5, 1) and taeda.as_column(v)._base is not None
has_gradients(taeda.as_column, v)
line = taeda.zeros(3)
line.as_column()[1] = 2
same(line, taeda.tensor([0.0, 2.0, 0.0]))

# a reduction
positive = values.abs() + 0.1
same(taeda.harmonic_mean(positive), 15 / (1 / positive).sum())
for dim, keepdim in [(0, False), (1, True), ((0, 1), False)]:
    count = positive.numel() / (1 / positive).sum(dim).numel()
    expected = count / (1 / positive).sum(dim, keepdim)
    same(positive.harmonic_mean(dim, keepdim), expected)
    same(positive.float().harmonic_mean(dim, keepdim), expected.float())
    out = taeda.empty_like(expected)
    same(taeda.harmonic_mean(positive, dim, keepdim, out=out), expected)
has_gradients(lambda x: taeda.harmonic_mean(x, 1), positive.clone().requires_grad_())
same(taeda.vmap(taeda.harmonic_mean)(positive), positive.harmonic_mean(1))
assert "mean of the inverses" in taeda.harmonic_mean.__doc__

# a structured op
last, rows = taeda.zeros(3, dtype=taeda.float64), []
for t in range(5):
    last = 0.25 * values[:, t] + 0.75 * last
    rows.append(last)
same(taeda.smooth(values, 0.75), taeda.stack(rows, 1))
same(values.float().smooth(0.75), taeda.stack(rows, 1).float())
has_gradients(lambda x: taeda.smooth(x, 0.75), x)
same(taeda.smooth(taeda.ones(4), 0.5), taeda.tensor([0.5, 0.75, 0.875, 0.9375]))
assert "Exponential smoothing" in taeda.smooth.__doc__

# an optimizer
from taeda.optim.lion import Lion

start, gradients = taeda.randn(4, 3), [taeda.randn(4, 3) for _ in range(5)]
expected, mean = start.clone(), taeda.zeros(4, 3)
for g in gradients:
    expected = expected * (1 - 0.1 * 0.2) - 0.1 * (0.9 * mean + 0.1 * g).sign()
    mean = 0.8 * mean + 0.2 * g
for differentiable in (False, True):
    param = taeda.nn.Parameter(start.clone())
    used = param if not differentiable else param.detach().clone()
    optimizer = Lion([used], lr=0.1, betas=(0.9, 0.8), weight_decay=0.2, differentiable=differentiable)
    for g in gradients:
        used.grad = g.clone()
        optimizer.step()
    same(used.detach(), expected)
    same(optimizer.state[used]["exp_avg"].detach(), mean)
assert "Lion" in taeda._C.ops._fused_lion_.__doc__
"""

WITHOUT_EDITABLE = """
import sys

sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
"""


@pytest.mark.slow
@pytest.mark.unsanitized("builds a taeda of its own, without")
@pytest.mark.skipif(build_folder() is None, reason="needs the build folder of this checkout")
def test_the_ops_of_the_walkthroughs_work(tmp_path):
    build = build_folder()
    assert build is not None
    build_copy(tmp_path, build)
    # An editable install's finder would come before PYTHONPATH.
    (tmp_path / "python" / "sitecustomize.py").write_text(WITHOUT_EDITABLE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python"), "TAEDA_CPU": LEVEL}
    python = functools.partial(
        subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    tried = python([sys.executable, "-c", TRIALS])
    assert tried.returncode == 0, tried.stderr[-4000:]
    stubs = python([sys.executable, "-m", "tests.stubs"])
    assert stubs.returncode == 0, stubs.stderr[-4000:]
    typed = (tmp_path / "python" / "taeda" / "_ops.pyi").read_text()
    for name in ("bent_identity", "standardize", "as_column", "harmonic_mean", "smooth"):
        assert f"def {name}(" in typed
