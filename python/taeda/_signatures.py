"""Signatures of the operations, read from their schemas; used by `inspect.signature`."""

from __future__ import annotations

import ast
import inspect
from typing import Any

_TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "complex",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "float[]": "Sequence[float]",
    "dtype": "dtype",
    "device": "device | str",
    "Generator": "Generator",
    "memory_format": "memory_format",
}


def split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif c in "[(":
            depth += 1
        elif c in "])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def annotation(text: str) -> str:
    """Return the Python type for a type of the schema language."""
    text = text.strip()
    optional = text.endswith("?")
    text = text.rstrip("?")
    if text.startswith("int["):
        result = "Sequence[int]" if text == "int[]" else "int | Sequence[int]"
    else:
        result = _TYPES.get(text, text)
    return result + " | None" if optional else result


def _default(text: str) -> Any:
    text = text.strip()
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text) if text.lstrip("-") == "inf" else text


def parse(schema: str, method: bool = False) -> inspect.Signature:
    """Return the signature that a schema such as ``"relu(self: Tensor) -> Tensor"`` describes."""
    head, _, returns = schema.rpartition("->")
    arguments = head[head.index("(") + 1 : head.rindex(")")]
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for part in split(arguments):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        name, _, rest = part.partition(":")
        type_text, equals, default = rest.partition("=")
        name = name.strip().rstrip("!")
        if name == "self" and not method:
            name = "input"
        parameters.append(
            inspect.Parameter(
                f"{name}_" if name in ("from", "lambda") else name,
                kind,
                annotation=annotation(type_text),
                default=_default(default) if equals else inspect.Parameter.empty,
            )
        )
    return inspect.Signature(parameters, return_annotation=returns.strip())


def signature(op: Any) -> inspect.Signature | None:
    """Return the signature of an operation; of the first form where it has several.

    A function whose forms Python cannot express has none.
    """
    try:
        return parse(op.overloads[0], method=op.__qualname__.startswith("Tensor."))
    except ValueError:
        return None
