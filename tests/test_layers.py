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


# Comments and literals, which the rule below does not read.
UNREAD = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])'")
# A tensor's memory (or a container's: the rule does not tell them apart).
MEMORY = re.compile(r"(?:\.|->)data(?:_as<[^;()]*?>)?\(\)|->data\b(?!\()|\bmemory<\w+>\(")
# A pointer to elements as a parameter.
POINTER = re.compile(r"[(,]\s*(?:const )?(?:auto|void|T|Out|float|double|int64_t)\* ?(\w+)(?=[,)])")
# What is no kernel, though it takes a pointer.
NO_KERNEL = re.compile(r"(\bstd::[\w:]+(<.*>)?|\bmem\w+|\bDims(Ref)?|_cast<[^()]*>)$")
# The door itself, whose functions copy to and from the host.
DOOR = "memory.h"


def before(text: str, end: int) -> int:
    """Where the bracket stands that is open at ``end``; -1 for none."""
    depth = 0
    for i in range(end - 1, -1, -1):
        if text[i] in ")]}":
            depth += 1
        elif text[i] in "([{":
            if depth == 0:
                return i
            depth -= 1
    return -1


def begin_of(text: str, end: int) -> int:
    """Where the expression begins that is followed by ``.name`` at ``end``."""
    while end > 0:
        if text[end - 1] in ")]":
            end = before(text, end - 1)
        elif text[end - 1].isalnum() or text[end - 1] in "_.":
            end -= 1
        elif text[end - 2 : end] in {"->", "::"}:
            end -= 2
        else:
            break
    return end


def reads_memory(text: str) -> list[str]:
    """What a source of ops does with a tensor's memory besides passing it to a kernel."""
    text = UNREAD.sub(lambda m: " " * len(m.group()), text)
    found = []
    for m in MEMORY.finditer(text):
        call = m.group().startswith("memory")
        begin = m.start() if call else begin_of(text, m.start())
        end = text.index(")", m.end()) + 1 if call else m.end()
        ahead, behind = text[:begin].rstrip(), text[end:].lstrip()
        argument = ahead[-1] in "({,?:" and behind[0] in ")},:"
        field = re.search(r"[.](?:\w|\[\w+\])+ =$", ahead) and behind[0] == ";"
        opened = before(text, begin)
        if not (argument or field) or NO_KERNEL.search(text[:opened].rstrip()[-80:]):
            found.append(text[begin:end])
    for m in POINTER.finditer(text):
        name = re.escape(m[1])
        scope = text[m.end() :].split("\n}", 1)[0]
        found += re.findall(rf"\*{name}\b|\b{name}(?:\[|\+\+| [+-]=? )", scope)
    return found


def test_ops_do_not_read_the_memory_of_tensors():
    """In ops, a tensor's memory is an argument of a kernel and nothing else: it may be a device's.

    `data()`, `data_as<T>()` and `memory<T>()` stand alone between the commas of a call, or become
    a field of a kernel's struct. Values on the host come and go through ops/core/memory.h.
    """
    found = {
        f"{source.name}: {what}"
        for source in SOURCES
        if source.relative_to(CSRC).parts[0] == "ops" and source.name != DOOR
        for what in reads_memory(source.read_text())
    }
    assert found == set()


FUNCTION = re.compile(r"^[\w:<>,&* ]*?\b(\w+)\(([^;{}]*?)\)(?: const)? \{\n(.*?)^\}", re.M | re.S)
CALL = re.compile(r"(?<![<\"\w.])(\w+)(?:<[^()<>]*>)?\(")
# The derivatives of functors, which look for a device's kernels first.
FINDS_KERNELS = {"ops/pointwise/pointwise.cpp"}


def kernels_in_derivatives(text: str) -> list[str]:
    """The functions with a kernel's call that derivatives of the file come to without an op."""
    bodies: dict[str, str] = {}
    pending = []
    for name, parameters, body in FUNCTION.findall(text):
        bodies[name] = bodies.get(name, "") + body
        if "Backward&" in parameters:
            pending.append(name)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [called for called in CALL.findall(bodies[name]) if called in bodies]
    return sorted(name for name in seen if "kernels<" in bodies[name])


def test_derivatives_call_kernels_in_ops():
    """The dispatcher finds out that a device lacks a kernel, and runs the op on the CPU."""
    for source in (CSRC / "ops").rglob("*.cpp"):
        if str(source.relative_to(CSRC)) not in FINDS_KERNELS:
            assert kernels_in_derivatives(source.read_text()) == [], source


def test_kernels_in_derivatives_are_found():
    kernel = "Tensor rows(const Tensor& x) {\n  kernels<K>(x.device()).rows(x.data());\n}\n"
    helper = "template <class T>\nTensor sums(const Tensor& x) {\n  return rows(x);\n}\n"
    derivative = "void f_backward(Backward& b) {{\n  b.set(0, {}(b.grad()));\n}}\n"
    assert kernels_in_derivatives(kernel + helper + derivative.format("sums<T>")) == ["rows"]
    assert kernels_in_derivatives(kernel + helper + derivative.format('op<"rows">')) == []


@pytest.mark.parametrize(
    "code",
    [
        "x = t.data_as<int64_t>()[i];",
        "x = *t.data_as<float>();",
        "auto* p = t.data_as<T>();",
        "const T* p = static_cast<const T*>(t.data());",
        "f(t.data_as<T>() + n);",
        "for (auto v : std::span(t.data_as<T>(), n)) use(v);",
        "for (int64_t v : DimsRef(t.data_as<int64_t>(), n)) use(v);",
        "std::copy_n(t.data_as<T>(), n, to);",
        "memcpy(to, t.data(), n);",
        "std::memset(t.data(), 0, n);",
        "std::fill(memory<T>(t), end, 0);",
        "memory<T>(t)[0] = 1;",
        "run([&](T* p) { p[0] = 1; });",
        "run([&](auto* p, int n) { return *p; });",
        "auto* p = t.storage()->data;",
    ],
)
def test_what_reads_memory_is_found(code):
    assert reads_memory(f"void f() {{\n  {code}\n}}\n")


@pytest.mark.parametrize(
    "code",
    [
        "kernels<K<T>>(x.device()).sort(x.data(), y.defined() ? y.data_as<T>() : nullptr, n);",
        "return {t.data_as<T>(), n};",
        "l.offsets = index.data_as<int64_t>();",
        "run([&](T* p) { kernels<K>(d).fill(e, p, n); });",
    ],
)
def test_what_passes_memory_on_is_allowed(code):
    assert reads_memory(f"void f() {{\n  {code}\n}}\n") == []


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
    if module == PACKAGE / "distributed" / "ray.py":
        # Classes derived from Ray's, in a module that nothing else imports.
        allowed |= {"ray"}
    assert imported_at_top(ast.parse(module.read_text())) <= allowed


def test_nothing_refers_to_pytorch():
    """PyTorch is a reference in tests and benchmarks, never a dependency."""
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] != "torch" for alias in node.names), module
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] != "torch", module


# ---- imports within the package -----------------------------------------------------------------


def module_name(path: Path) -> str:
    parts = ["taeda", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PYTHON = {module_name(path): path for path in MODULES}


def imported(node: ast.Import | ast.ImportFrom, importer: str) -> set[str]:
    """The modules of the package that a statement reads names of.

    `import taeda` reads none: it only binds the name, and what is written after it is looked up when
    functions run. A name that is no module is read from the package that has it.
    """
    known = {*PYTHON, "taeda._C"}
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & known - {"taeda"}
    parts = importer.split(".")
    if PYTHON[importer].name != "__init__.py":
        parts.pop()
    base = parts[: len(parts) - node.level + 1] if node.level else []
    package = ".".join([*base, *([node.module] if node.module else [])])
    found = {f"{package}.{alias.name}" for alias in node.names}
    return {name if name in known else package for name in found} & known - {importer}


def imports(source: str, importer: str) -> tuple[set[str], list[tuple[int, set[str]]]]:
    """What a module imports when it is imported; and in functions, with the lines."""
    top: set[str] = set()
    inside: list[tuple[int, set[str]]] = []

    def look(body: list[ast.stmt], in_function: bool) -> None:
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found = imported(node, importer)
                if in_function:
                    inside.append((node.lineno, found))
                else:
                    top.update(found)
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                look(node.orelse, in_function)
            else:
                within = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                    look(getattr(node, part, []), within)

    look(ast.parse(source).body, False)
    return top, inside


IMPORTS = {name: imports(path.read_text(), name) for name, path in PYTHON.items()}


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that are imported with one."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        new = graph.get(pending.pop(), set()) - seen
        seen |= new
        pending += new
    return seen


REACHED = {name: reached(name, {n: top for n, (top, _) in IMPORTS.items()}) for name in IMPORTS}


def test_modules_import_each_other_in_one_direction():
    assert [name for name, found in REACHED.items() if name in found] == []


@pytest.mark.parametrize("name", [n for n, (_, inside) in IMPORTS.items() if inside])
def test_imports_that_would_close_a_circle_say_why(name):
    """One in a function that could not stand at the top needs a comment, there or a line above."""
    lines = PYTHON[name].read_text().splitlines()
    for number, modules in IMPORTS[name][1]:
        closing = {m for m in modules if name in REACHED.get(m, ())}
        said = "#" in lines[number - 1] or "#" in lines[number - 2]
        assert not closing or said, f"line {number}: {', '.join(sorted(closing))} imports {name}"


@pytest.mark.parametrize(
    ("source", "top", "inside"),
    [
        ("import taeda", set(), []),
        ("from taeda import _C, linalg", {"taeda._C", "taeda.linalg"}, []),
        ("from taeda import add", {"taeda"}, []),
        ("from . import functional", {"taeda.nn.functional"}, []),
        ("from ..special import erf", {"taeda.special"}, []),
        ("if TYPE_CHECKING:\n    import taeda.fft\nelse:\n    import taeda.nn", {"taeda.nn"}, []),
        ("try:\n    import taeda.fft\nexcept E:\n    import json", {"taeda.fft"}, []),
        ("class A:\n    def f():\n        import taeda.fft", set(), [(3, {"taeda.fft"})]),
    ],
)
def test_imports_are_found(source, top, inside):
    assert imports(source, "taeda.nn.grad") == (top, inside)


def test_circles_are_found():
    assert "a" in reached("a", {"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert "a" not in reached("a", {"a": {"b"}, "b": {"c"}})
