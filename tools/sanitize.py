#!/usr/bin/env python3
"""Build taeda with sanitizers and run its tests under them.

    tools/sanitize.py address                       # with UndefinedBehaviorSanitizer
    tools/sanitize.py thread
    tools/sanitize.py address tests/ops -k softmax  # only these Python tests: pytest's arguments
    tools/sanitize.py fuzz zip -max_total_time=600  # tests/robustness/fuzzers.py, guided by C++

Needs GCC and what the development install needs (`pip install -e ".[dev]"`). The build is the
preset `asan`, `tsan` or `fuzz`, in a folder of its own; its `_C` lies in `build/<preset>/package`,
among links to `python/taeda`, so that the module which is installed stays as it is. Without
arguments for pytest the C++ tests run first, on every instruction set of the machine, then the
whole Python suite, apart from tests with the marker `unsanitized`, which says why.

Reports are collected from all processes, also from those that tests start, in
`build/<preset>/reports`. The exit status is 0 only if there are none and all tests pass.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRESETS = {"address": "asan", "thread": "tsan", "fuzz": "fuzz"}
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# Python's own allocations are never all freed, and forked children start threads.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "die_after_fork=0:second_deadlock_stack=1:history_size=7",
}
# What the tests that run kernels for a GPU as fibers print; it is no finding.
FIBERS = re.compile(r"^==\d+==WARNING: ASan doesn't fully support makecontext.*\n?", re.MULTILINE)
FINDING = re.compile(r"^SUMMARY: (.*)|^(\S+: runtime error: .*)", re.MULTILINE)

# An editable install finds the package by itself, before PYTHONPATH is looked at.
SITECUSTOMIZE = """
import sys

sys.meta_path[:] = [
    f for f in sys.meta_path if "taeda" not in str(getattr(f, "known_source_files", ""))
]
"""


def run(*command: object, **options: object) -> int:
    """Run a command and return its exit status."""
    return subprocess.run([str(c) for c in command], check=False, **options).returncode


def build(preset: str, jobs: int | None) -> None:
    """Configure and compile in the preset's folder."""
    environment = {**os.environ}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = ROOT / "build" / preset
    here = {"cwd": ROOT, "env": environment}
    python = f"-DPython_EXECUTABLE={sys.executable}"
    steps = [["cmake", "--preset", preset, python], ["cmake", "--build", folder]]
    if preset == "fuzz":
        steps[1] += ["--target", "_C"]
    if jobs:
        steps[1] += ["-j", jobs]
    for step in steps:
        if run(*step, **here):
            sys.exit(f"sanitize.py: {step[1]} failed")


def package(folder: Path) -> Path:
    """Lay out the package: this tree's Python files beside the module just built."""
    tree = folder / "package"
    shutil.rmtree(tree, ignore_errors=True)
    top = tree / "python"
    (top / "taeda").mkdir(parents=True)
    (tree / "csrc").symlink_to(ROOT / "csrc")  # what extensions include
    for path in (ROOT / "python" / "taeda").iterdir():
        if not path.name.startswith("_C.") and path.name != "__pycache__":
            (top / "taeda" / path.name).symlink_to(path)
    for path in folder.glob("_C*.so"):
        (top / "taeda" / path.name).symlink_to(path)
    (top / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return top


def environment_for(kind: str, folder: Path, reports: Path) -> dict[str, str]:
    """Return the options of the sanitizers; libraries to load first are for Python alone."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.setdefault("TAEDA_NUM_THREADS", "4")
    for name, options in OPTIONS.items():
        mine = f"{options}:log_path={reports / 'report'}"
        if name == "TSAN_OPTIONS":
            mine += f":suppressions={ROOT / 'tools' / 'tsan.supp'}"
        environment[name] = f"{mine}:{os.environ.get(name, '')}".rstrip(":")
    import scipy_openblas32

    environment["LD_LIBRARY_PATH"] = scipy_openblas32.get_lib_dir()
    return environment


def preloaded(kind: str, folder: Path) -> str:
    """Return the libraries that must be loaded before Python."""
    cache = (folder / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)[1]
    names = [
        *RUNTIMES[kind],
        "libstdc++.so.6",
    ]  # whose exceptions the runtimes look up as they start
    ask = [[compiler, f"-print-file-name={name}"] for name in names]
    return ":".join(subprocess.check_output(a, text=True).strip() for a in ask)


def with_package(folder: Path) -> dict[str, str]:
    """Return the environment in which Python imports the module just built."""
    path = [str(package(folder)), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def test(kind: str, folder: Path, reports: Path, arguments: list[str]) -> bool:
    """Run the tests; returns whether they passed."""
    environment = environment_for(kind, folder, reports)
    # ThreadSanitizer's memory must lie at its own addresses.
    prefix = ["setarch", "-R"] if kind == "thread" else []
    good = True
    if not arguments:
        good = run(*prefix, folder / "taeda_tests", env=environment) == 0
    del environment["LD_LIBRARY_PATH"]
    environment["LD_PRELOAD"] = preloaded(kind, folder)
    environment |= with_package(folder)
    asked = "import taeda; print(taeda._C.__file__)"
    done = subprocess.run(
        [*prefix, sys.executable, "-c", asked], env=environment, capture_output=True, text=True
    )
    if not done.stdout.startswith(str(folder)):
        print(f"sanitize.py: another taeda is imported\n{done.stdout}{done.stderr}")
        return False
    options = ["-m", "not unsanitized", "-p", "no:cacheprovider"]
    if importlib.util.find_spec("xdist"):  # it goes on with the next test after a report
        options += ["-n", "1", "--max-worker-restart", "1000"]
    command = [*prefix, sys.executable, "-m", "pytest", *options, *arguments]
    return run(*command, env=environment, cwd=ROOT) == 0 and good


def show(reports: Path) -> int:
    """Print each kind of finding once; returns how many reports there are."""
    found: Counter[str] = Counter()
    first: dict[str, str] = {}
    for path in sorted(reports.iterdir()):
        text = FIBERS.sub("", path.read_text(errors="replace"))
        for match in FINDING.finditer(text):
            name = match[1] or match[2]
            found[name] += 1
            begin = 0 if match[1] else match.start()
            first.setdefault(name, f"{path}:\n{text[begin : begin + 3000]}")
        if not FINDING.search(text) and text.strip():
            found[text[:200]] += 1
            first.setdefault(text[:200], f"{path}:\n{text[:3000]}")
    for name, count in found.most_common():
        print(f"\n==== {count} times: {name}\n{first[name]}")
    print(f"\nsanitize.py: {sum(found.values())} reports of {len(found)} kinds, in {reports}")
    return len(found)


def main() -> None:
    """Build, test, report."""
    parser = argparse.ArgumentParser(description="Other arguments are those of pytest.")
    parser.add_argument("kind", choices=PRESETS)
    parser.add_argument("-j", "--jobs", type=int, help="compile this many files at once")
    parser.add_argument("--build", action="store_true", help="build, and run nothing")
    parser.add_argument("--built", action="store_true", help="run what was built before")
    options, arguments = parser.parse_known_args()
    folder = ROOT / "build" / PRESETS[options.kind]
    if not options.built:
        build(PRESETS[options.kind], options.jobs)
    if options.build:
        return
    if options.kind == "fuzz":
        command = [sys.executable, "-m", "tests.robustness.fuzzers", *arguments]
        sys.exit(run(*command, env={**os.environ, **with_package(folder)}, cwd=ROOT))
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    good = test(options.kind, folder, reports, arguments)
    sys.exit(1 if show(reports) or not good else 0)


if __name__ == "__main__":
    main()
