"""``__torch_function__``: how classes take part in the functions that are called with them.

A class with a ``__torch_function__(cls, func, types, args=(), kwargs=None)`` class method is asked
before an operation runs on its instances. Subclasses of Tensor inherit one that runs the operation
and returns results of the subclass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taeda import _C

__all__ = [
    "DisableTorchFunctionSubclass",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
]

_DISABLED = _C._disabled_torch_function_impl


class DisableTorchFunctionSubclass:
    """Inside ``with DisableTorchFunctionSubclass():`` no ``__torch_function__`` is called."""

    def __enter__(self) -> None:
        _C._change_torch_function_disabled(1)

    def __exit__(self, *exc_info: object) -> None:
        _C._change_torch_function_disabled(-1)


def _overrides(arg: Any) -> bool:
    kind = type(arg)
    if kind is _C.Tensor:
        return False
    function = getattr(kind, "__torch_function__", None)
    return function is not None and function is not _DISABLED


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of one of the arguments has a ``__torch_function__`` of its own."""
    return any(_overrides(arg) for arg in relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call the ``__torch_function__`` of the arguments' classes until one gives an answer.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments whose classes are asked; subclasses before their bases,
            otherwise from left to right.
        args, kwargs: what the function was called with.

    Raises:
        TypeError: all of them returned ``NotImplemented``.
    """
    asked: list[Any] = []
    for arg in relevant_args:
        kind = type(arg)
        if not _overrides(arg) or any(kind is type(other) for other in asked):
            continue
        place = next((i for i, o in enumerate(asked) if issubclass(kind, type(o))), len(asked))
        asked.insert(place, arg)
    types = tuple(type(arg) for arg in asked)
    for arg in asked:
        result = type(arg).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{list(types)}"
    )


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor or has a ``__torch_function__``."""
    return isinstance(inp, _C.Tensor) or hasattr(type(inp), "__torch_function__")
