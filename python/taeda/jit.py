"""The decorators of TorchScript, for code that carries them: it runs as the Python that it is.

Nothing is compiled, traced or saved here; ``trace``, ``freeze``, ``save`` and ``load`` are missing.

>>> import taeda
>>> @taeda.jit.script
... def double(x):
...     return x if taeda.jit.is_scripting() else 2 * x
>>> double(taeda.tensor(2.0))
tensor(4.)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Final",
    "annotate",
    "export",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "script",
    "script_if_tracing",
    "unused",
]

T = TypeVar("T")


def is_scripting() -> bool:
    """Whether TorchScript compiles the code that asks: never."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being recorded: never."""
    return False


def script(obj: T) -> T:
    """Return a function, class or module as it is: it runs eagerly.

    Warns with DeprecationWarning, as PyTorch 2.13 does.
    """
    warnings.warn(
        "`jit.script` is deprecated; taeda runs what it is given as it is",
        DeprecationWarning,
        stacklevel=2,
    )
    return obj


def script_if_tracing(fn: T) -> T:
    """Return a function as it is: nothing is ever traced."""
    return fn


def unused(fn: T) -> T:
    """Return a method as it is; TorchScript would raise an error in its place."""
    return fn


def export(fn: T) -> T:
    """Return a method as it is; TorchScript would compile it with its module."""
    return fn


def interface(obj: T) -> T:
    """Return a class as it is; TorchScript would take it for an interface of modules."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a method as it is; TorchScript would leave it to Python.

    Use it as a decorator, or call it with ``drop=`` (a bool) to get one.
    """
    if callable(drop):
        return drop
    unknown = set(kwargs) - {"drop_on_export"}
    if unknown or not isinstance(drop, bool):
        raise TypeError(f"jit.ignore: expected a function or drop=True or False, got {drop!r}")

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    return decorate


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; ``the_type`` is for TorchScript to read."""
    return the_value
