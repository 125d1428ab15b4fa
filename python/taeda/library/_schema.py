"""Schemas: made from a function's annotations, and translated into what the core reads."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union

import taeda
from taeda._C import Tensor
from taeda._signatures import split

_NUMBER = Union[int, float, bool]  # noqa: UP007 (a Union compares equal whatever its order)
_SCALARS: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "Scalar",
    _NUMBER: "Scalar",
    taeda.dtype: "ScalarType",
    taeda.device: "Device",
}
_LISTS = {"Tensor": "Tensor[]", "Tensor?": "Tensor?[]", "SymInt": "SymInt[]", "float": "float[]"}
# Type names of the schema language, and the core's names for them.
_CORE = {
    "SymInt": "int",
    "ScalarType": "dtype",
    "Device": "device",
    "MemoryFormat": "memory_format",
}
_KNOWN = {"Tensor", "int", "float", "bool", "str", "Scalar", "dtype", "device", "memory_format"}
_KNOWN |= {"Generator"}


def _type_name(hint: Any) -> str | None:
    """The schema's word for a Python type; None where there is none."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType) and type(None) in args:
        rest = tuple(a for a in args if a is not type(None))
        inner = _type_name(rest[0] if len(rest) == 1 else Union[rest])  # noqa: UP007
        return None if inner is None or inner.endswith("?") else inner + "?"
    if origin in (list, Sequence) and len(args) == 1:
        return _LISTS.get(_type_name(args[0]) or "")
    return None


def _return_name(hint: Any) -> str | None:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        args = typing.get_args(hint)
        if not args or any(a is not Tensor for a in args):
            return None
        return "Tensor" if len(args) == 1 else f"({', '.join('Tensor' for _ in args)})"
    name = _type_name(hint)
    return name if name in ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar") else None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """Return the schema that a function's annotations describe.

    Args:
        prototype_function: every parameter and the result must be annotated.
        mutates_args: the names of the tensors that the function changes in place, or
            ``"unknown"``, which stands for all of them.
        op_name: put before the schema.

    Raises:
        ValueError: an annotation is missing, or of a type that operations do not take.

    >>> def scale(x: taeda.Tensor, factor: float = 2.0) -> taeda.Tensor: ...
    >>> taeda.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float factor=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def wrong(message: str) -> ValueError:
        return ValueError(f"infer_schema(func): {message}. Got func with signature {signature}")

    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        raise wrong(f"an annotation cannot be evaluated: {error}") from error
    mutated = set(mutates_args) if not isinstance(mutates_args, str) else set()
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise wrong("mutates_args must be a sequence of names, or 'unknown'")
    parts, starred = [], False
    for count, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong(f"parameter {name} is positional-only or takes several arguments")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation")
        kind = _type_name(hints[name])
        if kind is None:
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}")
        if name in mutated or (mutates_args == "unknown" and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                raise wrong(f"Parameter {name} is in mutates_args but is no Tensor")
            kind = kind.replace("Tensor", f"Tensor(a{count}!)", 1)
        default = "" if parameter.default is parameter.empty else _default(parameter.default)
        if default is None:
            raise wrong(f"Parameter {name} has an unsupported default {parameter.default!r}")
        parts.append(f"{kind} {name}{default and '='}{default}")
    if unknown := mutated - set(signature.parameters):
        raise wrong(f"{sorted(unknown)} in mutates_args are no parameters of the function")
    if "return" not in hints:
        raise wrong("No return type annotation was provided")
    result = _return_name(hints["return"])
    if result is None:
        raise wrong(f"the return type {hints['return']} is not supported")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _default(value: Any) -> str | None:
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and not set(value) & set("'\"\\"):
        return f'"{value}"'
    return None


@dataclass(frozen=True)
class Argument:
    """One argument of an operation."""

    name: str
    kind: str
    mutated: bool
    keyword_only: bool

    @property
    def is_tensors(self) -> bool:
        """Whether it is a tensor or a list of them."""
        return self.kind.startswith("Tensor")

    @property
    def is_list(self) -> bool:
        """Whether it is a list of tensors."""
        return self.kind.startswith("Tensor") and "[" in self.kind


@dataclass(frozen=True)
class Schema:
    """The parameters and results of an operation."""

    text: str  # as it was written
    core: str  # as the core reads it
    arguments: tuple[Argument, ...]
    returns: str

    @property
    def mutates(self) -> bool:
        """Whether an argument is changed in place."""
        return any(a.mutated for a in self.arguments)


def parse(qualname: str, text: str) -> Schema:
    """Read a schema such as ``(Tensor x, int[] dims, *, float? s=None) -> (Tensor, Tensor)``."""

    def wrong(message: str) -> RuntimeError:
        return RuntimeError(f"{qualname}: {message} in the schema '{text}'")

    match = re.fullmatch(r"\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
    if not match:
        raise wrong("expected '(arguments) -> result'")
    arguments, parts, keyword_only = [], [], False
    for part in split(match[1]):
        if part == "*":
            keyword_only = True
            parts.append("*")
            continue
        found = re.fullmatch(r"(\w+)(\(\w+!?\))?([\[\]?\d]*)\s+(\w+)\s*(?:=\s*(.+))?", part)
        if not found:
            raise wrong(f"'{part}' is no argument")
        word, mark, suffix, name, default = found.groups()
        if mark and not mark.endswith("!)"):
            raise wrong(f"'{part}' says that the result is a view, which is not supported,")
        kind = _CORE.get(word, word) + suffix
        lists = "[" in suffix and word not in ("Tensor", "int", "SymInt", "float")
        if _CORE.get(word, word) not in _KNOWN or lists:
            raise wrong(f"unknown type '{word}{suffix}'")
        arguments.append(Argument(name, kind, bool(mark), keyword_only))
        if default:
            default = re.sub(r'^"(.*)"$', r"'\1'", default.strip())
            if kind == "Scalar" or kind.startswith("float"):
                default = re.sub(r"\.$", ".0", default)
        parts.append(f"{name}{'!' if mark else ''}: {kind}{f' = {default}' if default else ''}")
    returns = re.sub(r"\(\w+!\)", "", match[2])
    returns = re.sub(r"\bTensor \w+", "Tensor", _CORE.get(returns, returns))
    returns = "None" if returns == "()" else returns
    returns = re.sub(r"^\(Tensor\)$", "Tensor", returns)
    if not re.fullmatch(r"None|Tensor(\[\])?|int|float|bool|Scalar|\(Tensor(, Tensor)+\)", returns):
        raise wrong(f"unsupported result '{match[2]}'")
    core = f"{qualname}({', '.join(parts)}) -> {returns}"
    return Schema(f"{qualname}{text.strip()}", core, tuple(arguments), returns)
