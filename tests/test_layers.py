"""Includes point downwards: base < tensor < kernels < ops < autograd < python. Imports likewise."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CSRC, PACKAGE = ROOT / "csrc", ROOT / "python" / "taeda"
LAYERS = ["base", "tensor", "kernels", "ops", "autograd", "python"]
# What a derivative in an op file reads its saved values through.
SEAMS = {"autograd/backward.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)

SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in {".h", ".cpp"})
MODULES = sorted(PACKAGE.rglob("*.py"))


def names(paths: list[Path], root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in paths]


@pytest.mark.parametrize("source", SOURCES, ids=names(SOURCES, CSRC))
def test_includes_point_downwards(source):
    layer = source.relative_to(CSRC).parts[0]
    for included in INCLUDE.findall(source.read_text()):
        if included in SEAMS and layer == "ops":
            continue
        above = LAYERS[LAYERS.index(layer) + 1 :]
        assert included.split("/")[0] not in above, f"{source.name} includes {included}"
        if layer != "python":
            assert not re.search(r"(^|/)(Python|nanobind)", included), (
                "only python/ knows of Python"
            )


STRATEGIES = re.compile(
    r"\bcpu::|kernels/cpu/|\bparallel_for\b|\bScratch<|\bLoops?\b|thread_pool\.h|#include <thread>"
)


def test_ops_leave_strategies_to_kernels():
    """Ops reach kernels through tables by device: no threads, scratch memory or loops of the CPU."""
    found = {
        f"{source.name}: {line.strip()}"
        for source in SOURCES
        if source.relative_to(CSRC).parts[0] == "ops"
        for line in source.read_text().splitlines()
        if STRATEGIES.search(line.split("//")[0])
    }
    assert found == set()


def test_simd_kernels_know_nothing_of_tensors():
    """Their objects must share no inline function with code for another instruction set."""
    for source in (CSRC / "kernels" / "cpu").rglob("*simd/*"):
        if source.suffix in {".h", ".cpp"}:
            for included in INCLUDE.findall(source.read_text()):
                assert not included.startswith(("tensor/", "ops/", "autograd/")), source


def imported_at_top(tree: ast.Module) -> set[str]:
    """Top-level names of the absolute imports that run when the module is imported."""
    found: set[str] = set()
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With):
            pending += [child for child in ast.walk(node) if isinstance(child, ast.stmt)][1:]
        elif isinstance(node, ast.ClassDef):
            pending += node.body
    return found


@pytest.mark.parametrize("module", MODULES, ids=names(MODULES, PACKAGE))
def test_no_module_imports_third_parties_when_it_is_imported(module):
    allowed = sys.stdlib_module_names | {"taeda"}
    if module.parent.name == "sklearn" and module.name != "__init__.py":
        # Classes derived from scikit-learn's, which `taeda.sklearn` imports on first use.
        allowed |= {"numpy", "sklearn"}
    assert imported_at_top(ast.parse(module.read_text())) <= allowed


def test_nothing_refers_to_pytorch():
    """PyTorch is a reference in tests and benchmarks, never a dependency."""
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] != "torch" for alias in node.names), module
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] != "torch", module
