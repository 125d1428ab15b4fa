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

import builtins
import types
import warnings
from typing import (  # noqa: UP035
    TYPE_CHECKING,
    Any,
    Dict,
    Final,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from taeda.futures import Future
from taeda.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Attribute",
    "TracerWarning",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "onednn_fusion_enabled",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "unused",
    "wait",
]

T = TypeVar("T")
# Types of containers that do not say what they hold.
_BARE = (list, dict, tuple, List, Dict, Tuple, Optional)  # noqa: UP006


class ScriptModule(Module):
    """TorchScript's type of modules. taeda's ``script`` returns modules unchanged.

    So ``isinstance(module, ScriptModule)`` is False, but for classes that are written as this one's:
    they are modules like any other.
    """


class RecursiveScriptModule(ScriptModule):
    """The type of scripted modules. taeda has no instances."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("RecursiveScriptModule: taeda runs modules as they are; there are none")


class ScriptFunction:
    """The type of scripted functions. taeda has no instances."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("ScriptFunction: taeda runs functions as they are; there are none")


class TracerWarning(Warning):
    """The category of tracing warnings. Never issued: taeda does not trace."""


def is_scripting() -> bool:
    """Whether TorchScript is compiling the calling code: never."""
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


def script_method(fn: T) -> T:
    """Return a method as it is; TorchScript would compile it with its ``ScriptModule``."""
    return fn


def _overload(func: T) -> T:
    """Return a function as it is: one of several declarations of the function that follows."""
    return func


_overload_method = _overload
_script_if_tracing = script_if_tracing


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, or one of several; containers are looked into.

    Args:
        obj: the value.
        target_type: a class, a type such as ``list[int]``, ``dict[str, Tensor]``,
            ``tuple[int, str]`` or ``Optional[int]``, or a tuple of types.

    Raises:
        RuntimeError: a type of containers does not say what they hold.

    >>> from typing import List
    >>> taeda.jit.isinstance([1, 2], List[int]), taeda.jit.isinstance(["a"], List[int])
    (True, False)
    """
    if type(target_type) is tuple:
        return any(_is_of(obj, one) for one in target_type)
    return _is_of(obj, target_type)


def _is_of(obj: Any, kind: Any) -> bool:
    if kind in _BARE:
        raise RuntimeError(f"jit.isinstance: {kind} must say what it holds, as in List[int]")
    origin, args = get_origin(kind), get_args(kind)
    if origin is None:
        return builtins.isinstance(obj, kind) if kind is not None else obj is None
    if origin in (Union, types.UnionType):
        return any(_is_of(obj, one) for one in args)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return all(_is_of(item, args[0]) for item in obj)
        return len(obj) == len(args) and all(map(_is_of, obj, args))
    if origin is dict:
        return all(_is_of(k, args[0]) and _is_of(v, args[1]) for k, v in obj.items())
    return all(_is_of(item, args[0]) for item in obj)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a method as it is; TorchScript would leave it to Python.

    Use it as a decorator, or call it with ``drop=`` (a bool) to get one.
    """
    if callable(drop):
        return drop
    unknown = set(kwargs) - {"drop_on_export"}
    if unknown or not builtins.isinstance(drop, bool):
        raise TypeError(f"jit.ignore: expected a function or drop=True or False, got {drop!r}")

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    return decorate


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; ``the_type`` is for TorchScript to read."""
    return the_value


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """Call a function and return what `wait` gives. It runs at once, in the thread that calls.

    >>> import taeda
    >>> taeda.jit.wait(taeda.jit.fork(taeda.ones, 2))
    tensor([1., 1.])
    """
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """Return the result of what was forked."""
    return future.wait()


class Attribute(NamedTuple):
    """A value, and the type that TorchScript would take it for."""

    value: Any
    type: Any


_onednn_fusion = False
_fusion_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def enable_onednn_fusion(enabled: bool) -> None:
    """Say whether oneDNN may join operations; none are joined."""
    global _onednn_fusion
    _onednn_fusion = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told; initially False."""
    return _onednn_fusion


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Say how often to compile for other shapes; nothing is compiled. What was said before.

    Raises:
        ValueError: a strategy is neither ``"STATIC"`` nor ``"DYNAMIC"``.
    """
    global _fusion_strategy
    if any(kind not in ("STATIC", "DYNAMIC") for kind, _ in strategy):
        raise ValueError("set_fusion_strategy: expected STATIC or DYNAMIC")
    before, _fusion_strategy = _fusion_strategy, list(strategy)
    return before


class strict_fusion:
    """A block all of whose operations a compiler would have to join; outside of one nothing happens."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: object) -> None:
        return None
