"""The operations of the core as functions of the package's modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _C

if TYPE_CHECKING:
    from taeda._C import Op

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["described", "functions", "let_classes_answer"]

# The modules whose functions compute with tensors, and those of them that take none.
_COMPUTING = ("taeda._functional.", "taeda.functional", "taeda.nn.functional.")
_WITHOUT_TENSORS = ("broadcast_shapes", "empty_permuted", "is_storage", "is_tensor", "typename")


def functions(module: str) -> dict[str, Op]:
    """The operations whose rows name a module as theirs, by the names that they have there.

    Args:
        module: a module of the package, such as ``"linalg"``; ``""`` is the package itself.
    """
    ops = vars(_C.ops)
    own = [ops[name] for name, home in _C._function_modules.items() if home == module]
    return {op.__name__: op for op in own}


def described(function: F) -> F:
    """A decorator: begin the docstring with what the row of the operation of this name says."""
    text: str = vars(_C.ops)[function.__name__].__doc__
    _, _, said = text.partition("\n\n")  # after the signatures
    own = inspect.cleandoc(function.__doc__ or "")  # as the row, not indented
    function.__doc__ = f"{said.strip()}\n\n{own}"
    return function


def let_classes_answer(namespace: Mapping[str, Any]) -> None:
    """Let ``__torch_function__`` answer for the functions of tensors that are written in Python.

    Operations ask of their own accord. The functions stay the same objects.

    Args:
        namespace: public names and what they stand for.
    """
    for name, value in namespace.items():
        if name.startswith("_") or name in _WITHOUT_TENSORS or not isinstance(value, FunctionType):
            continue
        if value.__module__.startswith(_COMPUTING):
            _C._ask_overrides(value)
