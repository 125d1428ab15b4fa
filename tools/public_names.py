"""The public names of taeda: by which path each is reached, what it says, where it is written.

`names()` walks the package. A name is public in a module without a leading underscore if the
module's ``__all__`` lists it, or, where there is no such list, if it is a function or class that is
defined there. What several paths reach counts once, under the first in the order of `SECTIONS`;
modules that no section mentions follow in the last one. The attributes of ``Tensor`` count too.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import taeda
from taeda import _C, _signatures
from taeda._public_names import FROM_SUBMODULES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "taeda"

# The parts of the reference, and their modules in the order in which a reader looks for a name.
SECTIONS: dict[str, str] = {
    "Tensors": ". Tensor linalg fft special signal.windows sparse nested masked random quasirandom "
    "return_types storage types",
    "Gradients": "autograd autograd.forward_ad autograd.function autograd.functional "
    "autograd.graph autograd.grad_mode autograd.anomaly_mode autograd.gradcheck func",
    "Networks": "nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize "
    "nn.utils.parametrizations nn.utils.prune nn.utils.stateless nn.attention nn.attention.bias "
    "nn.attention.flex_attention nn.attention.varlen nn.parameter nn.grad nn.parallel",
    "Optimizers": "optim optim.lr_scheduler optim.swa_utils optim.optimizer",
    "Training": "training functional insight sklearn amp",
    "Data and files": "utils.data utils.data.distributed serialization safetensors hub "
    "utils.tensorboard",
    "Distributions": "distributions distributions.constraints distributions.transforms "
    "distributions.kl distributions.constraint_registry",
    "Tools": "utils utils.checkpoint utils.benchmark utils.flop_counter profiler testing library "
    "overrides utils.dlpack utils.cpp_extension utils.weak utils.hooks utils.deterministic "
    "utils.module_tracker utils.model_zoo utils.collect_env compiler monitor futures "
    "multiprocessing array_api",
    "Devices, processes and others": "",
}
# A program, an interface of other packages' build, and a module that has every operation again.
NOT_WALKED = ("taeda.torch", "taeda.compat", "taeda.ops", "taeda.include")


_NOTHING = object()


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
        path: the full one, such as ``"taeda.nn.Linear"``.
        module: the part before the last dot.
        value: what it stands for.
        kind: "function", "class", "method", "property" or "value".
    """

    path: str
    module: str
    value: Any
    kind: str

    @property
    def name(self) -> str:
        """The part after the last dot."""
        return self.path.rpartition(".")[2]


# ---- walking ------------------------------------------------------------------------------------


def full(module: str) -> str:
    """The module's path from its name in `SECTIONS`."""
    return "taeda" if module == "." else f"taeda.{module}"


def modules() -> dict[str, list[str]]:
    """The modules of each section."""
    found = {title: [full(word) for word in words.split()] for title, words in SECTIONS.items()}
    mentioned = {path for paths in found.values() for path in paths}
    rest = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        path = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        private = any(part.startswith("_") for part in path.split("."))
        if not private and not path.startswith(NOT_WALKED) and path not in mentioned:
            rest.append(path)
    found[list(found)[-1]] += rest
    return found


def load(path: str) -> Any:
    """A module of the package, or ``Tensor``; None where another package is missing for it."""
    if path == "taeda.Tensor":
        return taeda.Tensor
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if (error.name or "taeda").partition(".")[0] == "taeda":
            raise
        return None


def _listed(path: str, module: Any) -> list[str]:
    """The names that a module offers, sorted without regard to case."""
    if module is taeda.Tensor:
        found = [name for name in dir(module) if not name.startswith("_")]
    elif path == "taeda":
        found = [*taeda.__all__, *FROM_SUBMODULES]
    elif path == "taeda.return_types":
        found = [name for name, value in vars(module).items() if inspect.isclass(value)]
    elif hasattr(module, "__all__"):
        found = list(module.__all__)
    else:
        found = [
            name
            for name, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == path
        ]
    return sorted({n for n in found if not n.startswith("_")}, key=lambda n: (n.lower(), n))


def listed(path: str) -> list[tuple[str, Any]]:
    """All names that a module offers, and what they stand for."""
    module = load(path)
    return [(name, getattr(module, name)) for name in _listed(path, module)]


def kind_of(value: Any) -> str:
    """What sort of thing a value is."""
    if inspect.isclass(value):
        return "class"
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "property"
    documented = callable(value) and not isinstance(value, (types.GenericAlias, _C.dtype))
    if documented and type(value).__module__ != "typing":
        return "function"
    return "value"


def _of_others(name: str, value: Any) -> bool:
    """Whether a value is another package's, passed on."""
    if vars(typing).get(name, _NOTHING) is value:
        return True
    home = getattr(value, "__module__", None) or "taeda"
    return kind_of(value) in ("class", "function") and not home.startswith(("taeda", "_C"))


def of_module(path: str, seen: set[Any]) -> Iterator[Name]:
    """The names of a module that no module before it has; `seen` is kept up to date."""
    module = load(path)
    if module is None:
        return
    for name in _listed(path, module):
        value = inspect.getattr_static(module, name) if path.endswith(".Tensor") else None
        value = getattr(module, name) if value is None else value
        if isinstance(value, types.ModuleType) or _of_others(name, value):
            continue
        kind = kind_of(value)
        key = (path, name) if kind == "value" or path.endswith(".Tensor") else id(value)
        if key in seen:
            continue
        seen.add(key)
        if path.endswith(".Tensor") and kind == "function":
            kind = "method"
        yield Name(f"{path}.{name}", path, value, kind)


@functools.lru_cache(maxsize=1)
def names() -> dict[str, list[Name]]:
    """The public names of each module that has any of its own."""
    seen: set[Any] = set()
    found = {}
    for paths in modules().values():
        for path in paths:
            if inside := list(of_module(path, seen)):
                found[path] = inside
    return found


def members(name: Name) -> list[Name]:
    """The public attributes that a class defines, and those of its private bases."""
    found: dict[str, Any] = {}
    for base in name.value.__mro__:
        home = getattr(base, "__module__", "")
        own = base is name.value or (home.startswith("taeda") and base.__name__.startswith("_"))
        if not own:
            continue
        for key, value in vars(base).items():
            if not key.startswith("_"):
                found.setdefault(key, value)
    result = []
    for key, value in found.items():
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if kind_of(value) in ("function", "property"):
            kind = "property" if kind_of(value) == "property" else "method"
            result.append(Name(f"{name.path}.{key}", name.path, value, kind))
    return result


def described_member(owner: Name, member: Name) -> bool:
    """Whether a member is documented: by itself, by what it overrides, or by its class's text."""
    if documentation(member):
        return True
    above = (vars(base).get(member.name) for base in owner.value.__mro__[1:])
    if any(getattr(value, "__doc__", None) for value in above):
        return True
    return re.search(rf"\b{member.name}\b", documentation(owner)) is not None


# ---- what a name says ---------------------------------------------------------------------------

# What values are, which have no docstrings of their own.
VALUES = ROOT / "docs" / "reference" / "values.txt"


def table(file: Path) -> dict[str, str]:
    """The lines of a file such as ``nn.Linear: y = x``; a line that begins with # is a comment."""
    lines = (line.partition(": ") for line in file.read_text().splitlines())
    return {name: text for name, _, text in lines if text and not name.startswith("#")}


@functools.lru_cache(maxsize=1)
def described() -> dict[str, str]:
    """The table of `VALUES`."""
    return table(VALUES)


def is_operation(value: Any) -> bool:
    """Whether a value is an operation of the core, as a function or as a method."""
    return isinstance(value, (_C.Op, type(_C.Tensor.add)))


def documentation(name: Name) -> str:
    """The docstring, without the signatures that an operation's begins with; "" if there is none.

    What a class says is its own: that of a base does not count. A value is described by its type,
    or by the table in `VALUES`.
    """
    value = name.value
    if name.kind == "value":
        return described().get(name.path.removeprefix("taeda.")) or _of_value(name)
    if inspect.isclass(value):
        text = vars(value).get("__doc__")
    else:
        text = getattr(value, "__doc__", None)
    if not isinstance(text, str):
        return ""
    if is_operation(value):
        text = text.partition("\n\n")[2]
    head, _, rest = inspect.cleandoc(text).partition("\n\n")
    if re.fullmatch(r"\w+\([^`]*\)( -> [\w, ()]+)?", head):  # what C++ gives
        return rest
    return inspect.cleandoc(text)


def _of_value(name: Name) -> str:
    value = name.value
    if isinstance(value, _C.dtype):
        return f"The dtype {value}, of {value.itemsize} bytes for each element."
    kind = type(value)
    if not kind.__module__.startswith("taeda"):
        return ""
    return documentation(Name(name.path, name.module, kind, "class"))


def summary(name: Name) -> str:
    """The first sentence of the docstring, on one line."""
    paragraph = " ".join(documentation(name).partition("\n\n")[0].split())
    found = re.match(r"(.+?\.)(?=\s+[A-Z`(0-9]|$)", paragraph)
    return (found[1] if found else paragraph).rstrip(":")


def signatures(name: Name) -> list[str]:
    """What stands after the name: one text for each form, ``[""]`` for what is not called."""
    value = name.value
    if name.kind in ("value", "property"):
        return [""]
    if is_operation(value):
        method = name.kind == "method"
        own = _registered().get(id(value), value.__name__)
        found = (_of_schema(schema, method, own) for schema in value.overloads)
        return list(dict.fromkeys(found))
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        head = str(getattr(value, "__doc__", "")).strip().partition("\n\n")[0]
        found = re.fullmatch(r"\w+(\([^`]*\)( -> [\w, ()]+)?)", head)
        return [found[1] if found else "(...)"]
    parameters = list(signature.parameters.values())
    if name.kind == "method" and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    returns = signature.return_annotation
    if inspect.isclass(value) or returns in (inspect.Signature.empty, Any, "Any"):
        returns = inspect.Signature.empty
    return [_written(signature.replace(parameters=parameters, return_annotation=returns))]


def _of_schema(schema: str, method: bool, own: str) -> str:
    head, _, returns = schema.rpartition(" -> ")
    if hasattr(taeda.return_types, own) and ":" in returns:
        schema = f"{head} -> return_types.{own}"
    elif returns.startswith("("):
        schema = f"{head} -> tuple[{returns[1:-1]}]"
    try:
        signature = _signatures.parse(schema, method=method)
        rest = [p for p in signature.parameters.values() if not (method and p.name == "self")]
        return _written(signature.replace(parameters=rest))
    except ValueError:
        return schema[schema.index("(") :]


def _written(signature: inspect.Signature) -> str:
    """A signature as text: annotations without quotes, defaults that are short."""
    parts: list[str] = []
    kinds = [p.kind for p in signature.parameters.values()]
    for i, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not {p.KEYWORD_ONLY, p.VAR_POSITIONAL} & set(kinds[:i]):
            parts.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = star + p.name
        annotation = _annotation(p.annotation)
        text += f": {annotation}" if annotation else ""
        if p.default is not p.empty:
            text += f" = {_default(p.default)}" if annotation else f"={_default(p.default)}"
        parts.append(text)
        if p.kind is p.POSITIONAL_ONLY and kinds[i + 1 : i + 2] != [p.POSITIONAL_ONLY]:
            parts.append("/")
    returns = _annotation(signature.return_annotation)
    return f"({', '.join(parts)})" + (f" -> {returns}" if returns else "")


def _annotation(value: Any) -> str:
    if value in (inspect.Parameter.empty, Any, "Any"):
        return ""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = re.sub(r"\b(taeda\._C|taeda|typing|builtins|collections\.abc|_C)\.(?=\w)", "", text)
    return text.replace("'", "").replace("\n", " ")


def _default(value: Any) -> str:
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return str(value.__name__)
    text = repr(value)
    return "..." if text.startswith("<") or len(text) > 60 else text


# ---- where it is written ------------------------------------------------------------------------


@functools.cache
def _lines_of(file: Path) -> dict[str, int]:
    """The first line of each function and class of a Python file, by qualified name."""
    found: dict[str, int] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.setdefault(prefix + child.name, child.lineno)
                walk(child, f"{prefix}{child.name}.")
            elif isinstance(child, (ast.If, ast.Try, ast.With)):
                walk(child, prefix)
            elif isinstance(child, (ast.Assign, ast.AnnAssign)):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(prefix + target.id, child.lineno)

    walk(ast.parse(file.read_text()), "")
    return found


_ROWS = (
    r'\{\s*"(\w+)\(',  # a Define with a schema
    r'\binfo\{\s*"(\w+)["(]',  # a pointwise functor
    r'\{\s*"(\w+)",',  # another name, or a list that rows are made from
    r'"(\w+)"',
)


@functools.cache
def rows(strictly: bool = False) -> dict[str, tuple[str, int]]:
    """The C++ file and line that each operation is defined in, by its name.

    Args:
        strictly: only what is a row for certain, not any other place that has the name.
    """
    files = [*sorted((ROOT / "csrc" / "ops").rglob("*.cpp"))]
    files += sorted((ROOT / "csrc" / "kernels" / "functors").glob("*.h"))
    files += sorted((ROOT / "csrc" / "python").glob("*.cpp"))
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    found: dict[str, tuple[str, int]] = {}
    for pattern in _ROWS[:2] if strictly else _ROWS:
        new: dict[str, tuple[str, int]] = {}
        for file, text in texts.items():
            for match in re.finditer(pattern, text):
                start = text.rfind("\n", 0, match.start(1)) + 1
                if match[1] not in found and not text[start : match.start(1)].lstrip().startswith(
                    "//"
                ):
                    line = text.count("\n", 0, match.start(1)) + 1
                    new.setdefault(match[1], (file, line))
        found.update(new)
    return found


@functools.lru_cache(maxsize=1)
def _registered() -> dict[int, str]:
    """The registry's name of each operation: ``linalg_inv`` of ``taeda.linalg.inv``."""
    return {id(op): name for name, op in vars(_C.ops).items()}


def source(name: Name) -> tuple[str, int] | None:
    """The file, relative to the repository, and the line where a name is defined."""
    value = inspect.unwrap(name.value) if callable(name.value) else name.value
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "func", value)  # of a partial
    if is_operation(value):
        own = _registered().get(id(value), value.__name__)
        base = own.rstrip("_")  # whose row gives the in-place form too
        places = (rows(strictly=True).get(own), rows().get(base), rows().get(own))
        return next((place for place in places if place), rows().get(f"_{own}"))
    home = getattr(value, "__module__", None) or ""
    if home.startswith("taeda") and home not in ("taeda._C", "taeda"):
        code = getattr(value, "__code__", None)
        file = _file_of(home) if code is None else _in_the_tree(code.co_filename)
        if file is not None and file.is_file():
            line = _lines_of(file).get(getattr(value, "__qualname__", ""), 0)
            line = line or (code.co_firstlineno if code is not None else 1)
            return str(file.relative_to(ROOT)), line
        return _listed_in(PACKAGE / "_absent.py", name.name)
    if name.kind == "value":
        home_file = _file_of(name.module)
        if home_file is not None and name.name in _lines_of(home_file):
            return str(home_file.relative_to(ROOT)), _lines_of(home_file)[name.name]
        return None
    own = getattr(value, "__name__", name.name)
    return rows().get(own)


def _listed_in(file: Path, name: str) -> tuple[str, int] | None:
    """The line of a file that has a name as a string, or as a word of one."""
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if re.search(rf"[\"' ]{re.escape(name)}[\"' ]", line):
            return str(file.relative_to(ROOT)), number
    return None


def _in_the_tree(file: str) -> Path:
    """The file in this repository, of one that may be installed elsewhere."""
    return PACKAGE / file.rpartition("/taeda/")[2]


def _file_of(module: str) -> Path | None:
    base = PACKAGE.parent / Path(*module.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    return None


if __name__ == "__main__":
    for path, inside in names().items():
        bare = [name.name for name in inside if not documentation(name)]
        print(f"{path}: {len(inside)} names; without a docstring: {' '.join(bare) or 'none'}")
