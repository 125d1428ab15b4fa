"""The operations of the core as functions of the package's modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _C

if TYPE_CHECKING:
    from taeda._C import Op

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["described", "functions"]


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
    own = (function.__doc__ or "").replace("\n    ", "\n")  # as the row, not indented
    function.__doc__ = f"{said.strip()}\n\n{own}"
    return function
