"""Type stubs, made from the table of operations and from core.pyi, the part written by hand.

`python -m tests.stubs` writes them into python/taeda; with `--check` it says whether they are up to
date.
"""

from __future__ import annotations

import inspect
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import taeda
from taeda import _C
from taeda._public_names import FROM_SUBMODULES, SUBMODULES
from taeda._signatures import split
from taeda._tensor import types as _tensor_types

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python" / "taeda"
NOTE = "# Made by `python -m tests.stubs`. Do not edit: change an op, or tests/stubs/core.pyi.\n"
WIDTH = 100

TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "_Number",
    "int": "_int",
    "int[]": "Sequence[_int]",
    "complex": "_complex",
    "float": "_float",
    "float[]": "Sequence[_float]",
    "bool": "_bool",
    "str": "_str",
    "dtype": "_dtype",
    "device": "_Device",
    "Generator": "Generator",
    "memory_format": "memory_format",
}
FACTORY = {
    "layout": "_layout | None = None",
    "pin_memory": "_bool = False",
    "requires_grad": "_bool = False",
}
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
OPERATORS += ["and", "or", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]

OPS_HEADER = """
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import overload

from taeda import return_types
from taeda._C import Generator, Tensor, _Device, _dtype, _layout, _Number, memory_format

"""

PACKAGE_HEADER = """
from builtins import bool as _bool
from builtins import float as _float
from builtins import str as _str
from typing import Any

from taeda._tensor.types import tensortype

"""


# ---- one signature ------------------------------------------------------------------------------


def type_of(text: str, numbers: bool) -> str:
    """The Python type for a type of the schema language. `numbers`: a Tensor may be a number."""
    optional = text.endswith("?")
    text = text.removesuffix("?")
    if match := re.fullmatch(r"(int|float)\[\d+\]", text):
        result = f"_{match[1]} | Sequence[_{match[1]}]"
    elif text == "Tensor" and numbers:
        result = "_Number"
    else:
        result = TYPES[text]
    return f"{result} | None" if optional and result != "_Device" else result


def default_of(text: str) -> str:
    """A schema's default as it may stand in a stub."""
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?|True|False|None|'[^']*'", text):
        return text.replace("'", '"')
    return "..."


def result_of(text: str, name: str, method: bool) -> str:
    """The Python type of what an operation returns."""
    if text == "Tensor":
        return "Self" if method and name.endswith("_") and not name.endswith("__") else "Tensor"
    if text == "Tensor[]":
        return "tuple[Tensor, ...]"
    if text.startswith("("):
        parts = split(text[1:-1])
        if ":" in text:
            return f"return_types.{name}"
        return f"tuple[{', '.join('Tensor' for _ in parts)}]"
    return TYPES.get(text, text)


def render(name: str, parameters: list[str], result: str, indent: str, overloaded: bool) -> str:
    """A function without a body, on one line where it fits and else one parameter a line."""
    head = f"{indent}@overload\n" if overloaded else ""
    line = f"{indent}def {name}({', '.join(parameters)}) -> {result}: ..."
    if len(line) > WIDTH:
        inner = "".join(f"{indent}    {p},\n" for p in parameters)
        line = f"{indent}def {name}(\n{inner}{indent}) -> {result}: ..."
    return head + line + "\n"


def parameter_lists(form: dict[str, Any], method: bool, tensors: set[str]) -> Iterator[list[str]]:
    """The parameters of one overload; twice where its last list may be written item by item.

    `tensors`: what another overload takes as a Tensor, so that a Scalar is a number here.
    """
    schema = form["schema"]
    head = schema.rpartition("->")[0]
    arguments = split(head[head.index("(") + 1 : head.rindex(")")])
    names = [argument.partition(":")[0].strip().rstrip("!") for argument in arguments]
    own = (names.index("self") if "self" in names else 0) if method else None
    positional, keywords, items = [], [], ""
    inplace = names[0:1] and arguments[0].split(":")[0].strip().endswith("!")
    into = positional
    for i, (argument, name) in enumerate(zip(arguments, names, strict=True)):
        if argument == "*":
            into = keywords
        elif i != own:
            kind, _, default = (part.strip() for part in argument.partition(":")[2].partition("="))
            numbers = form["numbers"] and not (inplace and i == 0)
            if kind == "Scalar" and name in tensors:
                kind = "complex"
            name = "input" if name == "self" else name
            name = f"{name}_" if keyword.iskeyword(name) else name
            text = f"{name}: {type_of(kind, numbers)}"
            if default == "[]" and not kind.endswith("?"):
                text += " | None"
            into.append(f"{text} = {default_of(default)}" if default else text)
            if into is positional:
                items = {"int[]": "_int", "Tensor[]": "Tensor"}.get(kind, "")
                items = items and f"*{name}: {items}"
    if form["out"] and not method:
        returns = schema.rpartition("->")[2].strip()
        several = returns.startswith("(") or returns == "Tensor[]"
        keywords.append(f"out: {'Sequence[Tensor]' if several else 'Tensor'} | None = None")
    if form["factory"]:
        given = {keyword.partition(":")[0] for keyword in keywords}
        keywords += [f"{name}: {kind}" for name, kind in FACTORY.items() if name not in given]
    start = ["self"] if method else []
    yield start + positional + (["*", *keywords] if keywords else [])
    if items and (len(positional) == 1 or "Tensor" in items):
        yield start + positional[:-1] + [items, *keywords]


def operation(name: str, op: Any, indent: str = "", method: bool = False) -> str:
    """All overloads of an operation."""
    found: dict[tuple[str, ...], str] = {}
    tensors = set(re.findall(r"(\w+)!?: Tensor\b", " ".join(op.overloads)))
    for form in op._forms:
        result = result_of(form["schema"].rpartition("->")[2].strip(), name, method)
        for parameters in parameter_lists(form, method, tensors):
            found.setdefault(tuple(parameters), result)
    return "".join(
        render(name, list(parameters), result, indent, overloaded=len(found) > 1)
        for parameters, result in found.items()
    )


# ---- the files ----------------------------------------------------------------------------------


def operations() -> dict[str, Any]:
    """The operations of the core, by name."""
    return {name: op for name, op in sorted(vars(_C.ops).items()) if isinstance(op, _C.Op)}


def ops_stub() -> str:
    """taeda/_ops.pyi: every operation as a function."""
    functions = "".join(operation(name, op) for name, op in operations().items())
    return f"{NOTE}{OPS_HEADER}{functions}"


def return_types_stub() -> str:
    """taeda/return_types.pyi: the named tuples."""
    text = f"{NOTE}\nfrom typing import NamedTuple\n\nfrom taeda import Tensor\n"
    for name, kind in sorted(vars(_C.return_types).items()):
        if isinstance(kind, type):
            fields = "".join(f"    {field}: Tensor\n" for field in kind.__match_args__)
            text += f"\nclass {name}(NamedTuple):\n{fields}"
    return text


def operators() -> str:
    """The operators that take two operands."""
    text = ""
    for name in OPERATORS:
        result = "Self" if name == "matmul" else "Tensor"
        other = "Tensor" if name == "matmul" else "_Number"
        for form in (f"__{name}__", f"__r{name}__"):
            text += f"    def {form}(self, other: {other}, /) -> Tensor: ...\n"
        if name != "matmul":
            result = "Self"
            text += f"    def __i{name}__(self, other: {other}, /) -> {result}: ...\n"
    for name in COMPARISONS:
        note = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        text += f"    def __{name}__(self, other: _Number, /) -> Tensor: ...{note}\n"
    return text


def untyped(name: str, value: Any, indent: str = "") -> str:
    """What can be said of a name that core.pyi does not mention."""
    if not callable(value):
        return f"{indent}{name}: Any\n"
    parameters = ["*args: Any", "**kwargs: Any"]
    result = "Any"
    if isinstance(value, FunctionType):
        signature = inspect.signature(value)
        parameters = [
            str(p).replace("'", "").replace("builtins.", "") for p in signature.parameters.values()
        ]
        parameters = ["self" if p.startswith("self:") else p for p in parameters]
        parameters = [re.sub(r"= <.*>$|= taeda\.\w+$", "= ...", p) for p in parameters]
        result = str(signature.return_annotation).replace("builtins.", "")
        builtin = re.compile(r"\b(?<=[:\[|> ])(bool|bytes|complex|float|int|str|type)\b")
        parameters = [builtin.sub(r"_\1", p) for p in parameters]
        result = builtin.sub(r"_\1", " " + result).strip()
    elif indent:
        parameters.insert(0, "self")
    return render(name, parameters, result, indent, overloaded=False)


def methods(declared: set[str]) -> str:
    """Tensor's methods, without those that are declared already."""
    text = ""
    kind = type(_C.Tensor.add)
    for name, value in sorted(vars(_C.Tensor).items()):
        if name in declared or (name.startswith("__") and not isinstance(value, kind)):
            continue
        if isinstance(value, kind):
            text += operation(name, getattr(_C.ops, name), "    ", method=True)
        else:
            text += untyped(name, value, "    ")
    return text


def core_stub() -> str:
    """taeda/_C.pyi: core.pyi with the operations and whatever it forgets."""
    core = (HERE / "core.pyi").read_text()
    core = core[core.index("from builtins") :]
    before, after = core.split("    # @operators\n    # @methods\n")
    tensor = before[before.index("\nclass Tensor:") :]
    declared = set(re.findall(r"^    (?:def )?(\w+)(?=[(:])", tensor + operators(), re.MULTILINE))
    known = set(re.findall(r"^(?:class |def )?(\w+)(?=[(:])", core, re.MULTILINE))
    known |= {"ops", "return_types"}
    rest = "".join(
        untyped(name, value)
        for name, value in sorted(vars(_C).items())
        if name not in known and not name.startswith("__")
    )
    body = before + operators() + methods(declared) + after.replace("# @functions\n", rest)
    return f"{NOTE}\n{body}"


def public_names() -> set[str]:
    """What users may write after `taeda.`."""
    names = {n for n, v in vars(taeda).items() if n[0] != "_" and not isinstance(v, ModuleType)}
    names |= {*taeda.__all__, *filter(taeda._has_submodule, SUBMODULES)}
    names |= {n for n in FROM_SUBMODULES if n[0] != "_"}
    return names - {"annotations", "TYPE_CHECKING"}


def package_stub() -> str:
    """taeda/__init__.pyi: where each public name of the package comes from."""
    ops, core = operations(), vars(_C)
    imports: list[tuple[str, str, str]] = []
    others = ""
    for name in sorted(public_names()):
        value = getattr(taeda, name)
        home = getattr(value, "__module__", "") or ""
        names = [n for n, v in core.items() if v is value and v is not None]
        original = name if name in names else next(iter(names), None)
        if isinstance(value, ModuleType):
            imports.append(("taeda", name, name))
        elif isinstance(value, _C.Op) and ops.get(name) is value:
            imports.append(("taeda._ops", name, name))
        elif original and original != name:  # taeda.long, another name for taeda.int64
            others += f"{name}: {type(value).__name__}\n"
        elif original:
            imports.append(("taeda._C", original, name))
        elif isinstance(value, _tensor_types.tensortype):
            others += f"{name}: tensortype\n"
        elif home.startswith("taeda.") and vars(sys.modules[home]).get(name) is value:
            imports.append((home, name, name))
        elif name in FROM_SUBMODULES:
            imports.append((FROM_SUBMODULES[name], name, name))
        elif isinstance(value, FunctionType):
            others += untyped(name, value)
        else:
            others += f"{name}: {'None' if value is None else '_' + type(value).__name__}\n"
    text = "".join(f"from {m} import {n} as {name}\n" for m, n, name in sorted(imports))
    return f"{NOTE}{PACKAGE_HEADER}{text}\n{others}"


def namespace_stub(module: ModuleType) -> str:
    """The stub of a module that is filled from the registry: which operation each name is."""
    ops = {id(op): name for name, op in operations().items()}
    text = f"{NOTE}from taeda import _ops\n"
    functions = ""
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if isinstance(value, _C.Op):
            functions += f"{name} = _ops.{ops[id(value)]}\n"
        else:
            text += f"from taeda._C import {name} as {name}\n"
    return f"{text}\n{functions}"


def functional_stub() -> str:
    """taeda/nn/functional/_operations.pyi: without those that have another function in front."""
    shown = ModuleType("shown")
    functional, ours = taeda.nn.functional, taeda.nn.functional._operations
    for name in ours.__all__:
        if getattr(functional, name) is getattr(ours, name):
            setattr(shown, name, getattr(ours, name))
    shown.__all__ = [name for name in vars(shown) if not name.startswith("__")]
    return namespace_stub(shown)


def absent_stub(module: ModuleType) -> str:
    """The stub of a module that is filled from taeda/_absent.py."""
    classes = functions = values = ""
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if isinstance(value, type):
            classes += (
                f"class {name}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
            )
            if hasattr(value, "__enter__"):
                classes += "    def __enter__(self) -> None: ...\n"
                classes += "    def __exit__(self, *exc_info: object) -> None: ...\n"
        elif isinstance(value, FunctionType):
            given = inspect.signature(value).parameters.values()
            parameters = [
                f"{p.name}: Any" + (f" = {p.default!r}" if p.default is not p.empty else "")
                for p in given
            ]
            required = [p for p in given if p.default is p.empty]
            try:
                result = type(value(*[_SAMPLES[p.name] for p in required])).__name__
            except Exception:  # it needs a device
                result = "Any"
            result = _RESULTS.get(result, result)
            functions += render(name, parameters, result, "", overloaded=False)
        else:
            values += f"{name}: Any\n"
    return f"{NOTE}from typing import Any\n\n_REST: dict[str, Any]\n{classes}{functions}{values}"


# Arguments, and types of results, of functions that hold without a device.
_SAMPLES = {"seed": 0, "new_states": [], "stream": None}
_RESULTS = {
    "NoneType": "None",
    "list": "list[Any]",
    "dict": "dict[str, Any]",
    "OrderedDict": "dict[str, Any]",
}


def stubs() -> dict[Path, str]:
    """The text of each file."""
    return {
        **{
            PACKAGE / f"{name}.pyi": absent_stub(getattr(taeda, name))
            for name in ("accelerator", "mps", "mtia", "xpu")
        },
        PACKAGE / "cuda" / "_rest.pyi": absent_stub(taeda.cuda._rest),
        PACKAGE / "fft.pyi": namespace_stub(taeda.fft),
        PACKAGE / "linalg.pyi": namespace_stub(taeda.linalg),
        PACKAGE / "special.pyi": namespace_stub(taeda.special),
        PACKAGE / "nn" / "functional" / "_operations.pyi": functional_stub(),
        PACKAGE / "__init__.pyi": package_stub(),
        PACKAGE / "_C.pyi": core_stub(),
        PACKAGE / "_ops.pyi": ops_stub(),
        PACKAGE / "return_types.pyi": return_types_stub(),
    }
