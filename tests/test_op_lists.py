"""What an op is stands in its row: no list of names of ops anywhere else says it once more.

Counted are the names in collections of strings, in Python and in C++. A few that name functions of
the public interface for another reason are listed below with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).parents[1]
OPS = frozenset(name for name, op in vars(taeda._C.ops).items() if isinstance(op, taeda._C.Op))
MOST = 3  # so many names may stand together: overloads of one meaning, not a table

# What these collections name, and why it is no property of ops.
ALLOWED = {
    "python/taeda/_tensor/methods.py: _CONVERSIONS": "methods named after dtypes",
    "python/taeda/storage.py: for _name": "methods named after dtypes",
    "python/taeda/nn/init.py: _UNIT_GAINS": "what calculate_gain takes as an argument",
    "python/taeda/distributed/tensor/_dtensor.py: _LOCAL": "methods that a DTensor leaves to its parts",
    "python/taeda/nn/parameter.py: _SHAPELESS": "methods that a parameter without shape has",
    "python/taeda/insight/_mistakes.py: FIXES": "advice in words, of its own for each",
    "python/taeda/functional/__init__.py: _LAZY": "names of PyTorch's module of that name",
    "python/taeda/_dispatched.py: _FIRST_NAMES": "names of PyTorch's operator registry",
    "python/taeda/_dispatched.py: _RULES": "names of PyTorch's operator registry",
    "csrc/ops/pointwise/copy.cpp: float": "defines rows",
}


def literals(node: ast.AST) -> list[str]:
    """The strings that a collection holds; the words of a string that is nothing but names."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items: list[ast.expr | None] = list(node.elts)
    elif isinstance(node, ast.Dict):
        items = list(node.keys)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        return words if all(word.isidentifier() for word in words) else []
    else:
        return []
    found = []
    for item in items:
        inner = item.elts if isinstance(item, (ast.List, ast.Tuple)) else [item]
        found += [x.value for x in inner if isinstance(x, ast.Constant)]
    return [x for x in found if isinstance(x, str)]


def is_list_of_ops(names: list[str]) -> bool:
    known = sum(name in OPS or name.rstrip("_") in OPS for name in names)
    return known > MOST and 2 * known > len(names)


def place(parents: dict[ast.AST, ast.AST], node: ast.AST) -> str:
    """The assignment or loop that a node is in."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.For):
            return f"for {ast.unparse(node.target).split(',')[0].strip('(')}"
        if isinstance(node, ast.Assign):
            return ast.unparse(node.targets[0])
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            return ast.unparse(node.target)
        if isinstance(node, ast.FunctionDef):
            return f"{node.name}()"
    return "?"


def lists_in_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if is_list_of_ops(literals(node)):
            where = place(parents, node)
            if where != "__all__":
                yield where


TOKEN = re.compile(r'//[^\n]*|"((?:[^"\\\n]|\\.)*)"|(\w+\()?\{|\}|;')
COMPARED = re.compile(r'\b(?:op\.)?name\b(?:\(\))? [=!]= "(\w+)"')


def lists_in_cpp(text: str) -> Iterator[str]:
    """The first name of each list in braces, alone or each in braces with what belongs to it.

    A block with statements is no list, and `register_aliases({...})` defines rows.
    """
    blocks: list[list[str] | None] = []
    for token in TOKEN.finditer(text):
        string, call = token[1], token[2]
        if string is not None:
            if blocks and blocks[-1] is not None and text[token.start() - 1] != "<":
                blocks[-1].append(string)
        elif token[0].endswith("{"):
            blocks.append(None if call == "register_aliases(" else [])
        elif token[0] == ";" and blocks:
            blocks[-1] = None
        elif token[0] == "}" and blocks:
            names = blocks.pop()
            if names and is_list_of_ops(sorted(set(names))):
                yield names[0]
            elif names and blocks and blocks[-1] is not None:
                blocks[-1].append(names[0])
    for statement in text.split(";"):
        compared = COMPARED.findall(statement)
        if is_list_of_ops(compared):
            yield compared[0]


def test_python_has_no_list_of_ops():
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {where}"
        for path in sorted((ROOT / "python" / "taeda").rglob("*.py"))
        for where in lists_in_python(path.read_text())
    }
    assert found == {place for place in ALLOWED if place.startswith("python/")}


def test_cpp_has_no_list_of_ops():
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {first}"
        for path in sorted((ROOT / "csrc").rglob("*.[ch]*"))
        for first in lists_in_cpp(path.read_text())
    }
    assert found == {place for place in ALLOWED if place.startswith("csrc/")}


@pytest.mark.parametrize(
    "text",
    [
        'NAMES = ["add", "sub", "mul", "div"]',
        'NAMES = {"add_": 1, "sub_": 2, "mul_": 3, "div_": 4}',
        'NAMES = frozenset({"mm", "bmm", "conv1d", "matmul", "else"})',
        'RULES = [("softmax log_softmax cumsum sort", along)]',
        'for name in ("sin", "cos", "tan", "tanh"): pass',
    ],
)
def test_a_list_in_python_is_found(text: str):
    assert list(lists_in_python(text))


@pytest.mark.parametrize(
    "text",
    [
        'constexpr const char* kLower[] = {"mm", "bmm", "conv1d",\n "matmul"};',
        'std::set<std::string_view> x{"add", "sub", "mul", "div"};',
        'map rules{{"cat", join}, {"stack", join},\n {"gather", {at(0), 0}}, {"take", pick}};',
        'if (name == "addmm" || name == "addmv" || name == "addr" || name == "bmm") return 1;',
    ],
)
def test_a_list_in_cpp_is_found(text: str):
    assert list(lists_in_cpp(text))


def test_traits_are_asked_for_by_name():
    assert taeda._C._op_traits("autocast")["conv2d"] == "lower"
    assert "exp" not in taeda._C._op_traits("autocast")
    assert taeda._C._op_traits("autocast_on_cuda")["exp"] == "float32"
    assert taeda._C._op_traits("vmap")["_linalg_ormqr"] == ("leading", 2, 1, 2)
    assert taeda._C._op_traits("numbers")["eq"] == "after_self"
    with pytest.raises(ValueError, match="no trait 'colour'"):
        taeda._C._op_traits("colour")
