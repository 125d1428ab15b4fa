"""What code asks of a compiler, where there is none: everything runs eagerly.

>>> import taeda
>>> taeda.compiler.is_compiling()
False
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]

T = TypeVar("T")
_said = False


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module as it is: taeda runs eagerly, and says so the first time.

    Args:
        model: what to compile. None returns a decorator.
        fullgraph: whether one graph must hold everything; none is made.
        dynamic: whether sizes may change; they may.
        backend: a compiler's name, or a function that is one; none is called.
        mode: what a compiler would optimise for; not together with ``options``.
        options: a compiler's options; not together with ``mode``.
        disable: True asks for what happens anyway, so nothing is said.

    Raises:
        RuntimeError: ``mode`` and ``options`` are both given, or ``model`` cannot be called.
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: either mode or options can be specified, but both are")
    if model is None:
        return lambda model: compile(
            model,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or module, got {type(model).__name__}")
    if not disable:
        _say_once(backend)
    return model


def _say_once(backend: Any) -> None:
    global _said
    if not _said:
        _said = True
        asked = "" if backend is None else f" (backend={backend!r} is not called)"
        warnings.warn(
            f"compile: taeda runs functions and modules eagerly, as they are{asked}",
            stacklevel=3,
        )


def is_compiling() -> bool:
    """Whether a compiler looks at the code that asks: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a compiler traces the code that asks: never."""
    return False


def is_exporting() -> bool:
    """Whether the code that asks is being exported: never."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function as it is, or a decorator that does: no compiler looks at it anyway."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: T) -> T:
    """Return a function as it is: a compiler would not look inside."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """No-op: taeda has no CUDA graphs."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of the compilers: none."""
    return []


def reset() -> None:
    """Forget what has been compiled: nothing has."""
