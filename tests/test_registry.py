"""Functions of the package's modules come from the rows of their operations."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pickle
from pathlib import Path

import pytest

import taeda
from taeda import _C

OPS = {name: op for name, op in vars(_C.ops).items() if isinstance(op, _C.Op)}
PACKAGE = Path(taeda.__file__).parent
MODULES = ("fft", "linalg", "special", "nn.functional")


def of(module: str) -> dict[str, _C.Op]:
    homes = _C._function_modules.items()
    return {OPS[name].__name__: OPS[name] for name, home in homes if home == module}


@pytest.mark.parametrize("module", ["fft", "linalg", "special"])
def test_modules_have_the_functions_of_their_rows(module):
    functions = importlib.import_module(f"taeda.{module}")
    for name, op in of(module).items():
        assert getattr(functions, name) is op and name in functions.__all__
        assert op.__module__ == f"taeda.{module}" and op.__qualname__ == name
        assert pickle.loads(pickle.dumps(op)) is op
        assert inspect.signature(op).parameters


def test_nn_functional_has_the_functions_of_its_rows():
    """The operation itself, or a function with other arguments or other checks."""
    functional = taeda.nn.functional
    for name, op in of("nn.functional").items():
        value = getattr(functional, name)
        assert name in functional.__all__ and (value is op or inspect.isfunction(value)), name
    for name in functional.__all__:
        value = getattr(functional, name)
        if isinstance(value, _C.Op):
            assert pickle.loads(pickle.dumps(value)) is value


def forwards(function: ast.FunctionDef) -> bool:
    """Whether a function does nothing but pass its arguments on to an operation."""
    parameters = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if function.decorator_list or len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    call = body[0].value
    if not (isinstance(call, ast.Call) and ast.unparse(call.func).startswith("ops.")):
        return False
    passed = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [a.id for a in passed if isinstance(a, ast.Name)] == parameters


def test_wrappers_mean_something_else_than_the_operation():
    for path in sorted((PACKAGE / "nn" / "functional").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert not forwards(node), f"{path.name}: {node.name} is the operation itself"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("def f(a, b=1, *, out=None):\n    return ops.f(a, b, out=out)", True),
        ("def f(a, b=1):\n    '''Doc.'''\n    return ops._g(a, b)", True),
        ("def f(a, inplace=False):\n    return ops.f_(a) if inplace else ops.f(a)", False),
        ("def f(a, b):\n    return ops.f(a, sizes(b))", False),
        ("def f(a, b):\n    check(a)\n    return ops.f(a, b)", False),
    ],
)
def test_forwarding_is_found(text, answer):
    (function,) = ast.parse(text).body
    assert forwards(function) is answer


def test_examples_of_the_rows():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for name, op in OPS.items():
        example = parser.get_doctest(op.__doc__, {"taeda": taeda}, name, None, None)
        runner.run(example)
    result = runner.summarize()
    assert result.failed == 0 and result.attempted > 0


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_modules(module):
    found = importlib.import_module(f"taeda.{module}")
    parts = [found]
    if module == "nn.functional":
        parts = [importlib.import_module(f"taeda.{module}._{p}") for p in ["activation", "norm"]]
    for part in parts:
        result = doctest.testmod(part, extraglobs={"taeda": taeda})
        assert result.failed == 0 and result.attempted > 0


def test_none_stands_for_a_list_that_is_empty_by_default():
    x = taeda.arange(16.0).view(1, 4, 4)
    for pooled in (taeda.nn.functional.avg_pool2d(x, 2, None), taeda.max_pool2d(x, 2, stride=None)):
        assert pooled.shape == (1, 2, 2)
    assert taeda.roll(x, 1, None).flatten()[0] == 15
    with pytest.raises(TypeError, match="padding"):
        taeda.nn.functional.avg_pool2d(x, 2, 2, None)


def test_files_name_operations_by_their_modules():
    from taeda.serialization._places import name_to_write, place_of

    functional = taeda.nn.functional
    assert place_of(functional.gelu) == ("nn.functional", "gelu")
    assert place_of(functional.conv2d) == ("", "conv2d")
    assert place_of(taeda.linalg.inv) == ("linalg", "inv")
    assert name_to_write(functional.conv2d) == ("taeda", "conv2d")
    assert place_of(_C.ops._attention) is None


def test_functions_begin_with_what_the_row_says():
    functional = taeda.nn.functional
    for name in ("relu", "elu", "softmax", "prelu"):
        said = OPS[name].__doc__.partition("\n\n")[2].strip()
        text = inspect.getdoc(getattr(functional, name))
        assert text.startswith(said) and len(text) > len(said)
    assert "\n    ValueError: min_val" in inspect.getdoc(functional.hardtanh)
