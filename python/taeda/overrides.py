"""``__torch_function__``: how classes take part in the functions that are called with them.

A class with a ``__torch_function__(cls, func, types, args=(), kwargs=None)`` class method is asked
before an operation runs on its instances. Subclasses of Tensor inherit one that runs the operation
and returns results of the subclass. A ``TorchFunctionMode`` is asked about every operation,
whatever its arguments are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from taeda import _C

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_DISABLED = _C._disabled_torch_function_impl


class DisableTorchFunctionSubclass:
    """Inside ``with DisableTorchFunctionSubclass():`` no ``__torch_function__`` is called."""

    def __enter__(self) -> None:
        _C._change_torch_function_disabled(1)

    def __exit__(self, *exc_info: object) -> None:
        _C._change_torch_function_disabled(-1)


class TorchFunctionMode:
    """Inside ``with TorchFunctionMode():`` its ``__torch_function__`` handles every call.

    A subclass defines ``__torch_function__(self, func, types, args=(), kwargs=None)``. It is called
    for every operation that this thread calls from Python: functions, methods, operators, indexing
    and ``tensor``; not for attributes such as ``shape``. While it runs the mode is set aside, so it
    may call ``func`` itself; of modes inside of one another, the innermost is asked first, and what
    it calls meets the next. It may return ``NotImplemented`` to leave the call to the classes of
    the arguments.

    >>> class Names(taeda.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     y = taeda.ones(2) + 1
    ones
    add
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a call in the operation's place. A subclass has to define it."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no __torch_function__, which a TorchFunctionMode needs"
        )

    def __enter__(self) -> Self:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function unchanged."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ``func``."""
        return func(*args, **(kwargs or {}))


def _overrides(arg: Any) -> bool:
    kind = type(arg)
    if kind is _C.Tensor:
        return False
    function = getattr(kind, "__torch_function__", None)
    return function is not None and function is not _DISABLED


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode, or the class of one of the arguments, has a ``__torch_function__``."""
    return bool(_C._torch_function_modes()) or any(_overrides(arg) for arg in relevant_args)


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """``has_torch_function`` of one argument."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """``has_torch_function`` of the arguments, given one by one."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call ``__torch_function__`` of the mode and the arguments' classes until one gives an answer.

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
    if _C._torch_function_modes():
        mode = _C._pop_torch_function_mode()
        try:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        finally:
            _C._push_torch_function_mode(mode)
        if result is not NotImplemented:
            return result
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


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that lets modes and the arguments' classes answer for a function.

    Args:
        dispatcher: called with the function's arguments; returns those whose classes are asked.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether ``func`` is a method of Tensor, or reads or writes one of its attributes."""
    name = getattr(func, "__name__", None)
    if name in ("__get__", "__set__"):
        return True
    return name is not None and getattr(_C.Tensor, name, None) is func


def resolve_name(f: Any) -> str | None:
    """The full name of a function, as ``taeda.nn.functional.relu``; None for what has none."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if name is None:
        return None
    module = getattr(f, "__module__", None)
    if is_tensor_method_or_property(f) and name != "__get__" and name != "__set__":
        return f"taeda.Tensor.{f.__name__}"
    return f"{module}.{name}" if module else name


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that ask ``__torch_function__``, by the module or class that they are in.

    >>> taeda.add in taeda.overrides.get_overridable_functions()[taeda]
    True
    """
    import taeda
    from taeda._public_names import FROM_SUBMODULES

    modules = (taeda, taeda.nn.functional, taeda.linalg, taeda.fft, taeda.special)
    found: dict[Any, list[Callable[..., Any]]] = {}
    for module in modules:
        names = [*module.__all__, *(FROM_SUBMODULES if module is taeda else ())]
        values = (getattr(module, name) for name in names if not name.startswith("_"))
        found[module] = [v for v in values if isinstance(v, _C.Op) or _C._asks_overrides(v)]
    methods = (getattr(_C.Tensor, name) for name in dir(_C.Tensor) if name != "__class__")
    found[_C.Tensor] = [m for m in methods if callable(m) and not isinstance(m, type)]
    return found


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions that are called with no tensor, and so ask no class: those that make tensors."""
    import taeda

    names = "tensor as_tensor asarray linspace logspace from_numpy frombuffer load save seed "
    names += "manual_seed set_default_dtype is_tensor is_storage is_grad_enabled set_grad_enabled "
    names += "no_grad enable_grad"
    made = {op for op in get_overridable_functions()[taeda] if _is_factory(op)}
    return {getattr(taeda, name) for name in names.split()} | made


def _is_factory(op: Any) -> bool:
    """Whether an operation makes a tensor of none."""
    return isinstance(op, _C.Op) and all(
        form["factory"] and ": Tensor" not in form["schema"] for form in op._forms
    )


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that asks ``__torch_function__``, one with its parameters that returns -1.

    >>> replacement = taeda.overrides.get_testing_overrides()[taeda.add]
    >>> replacement(taeda.ones(1), 2)
    -1
    """
    import inspect

    def stand_in(function: Any) -> Any:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return lambda *args, **kwargs: -1

        def replacement(*args: Any, **kwargs: Any) -> int:
            signature.bind(*args, **kwargs)
            return -1

        replacement.__signature__ = signature  # type: ignore[attr-defined]
        return replacement

    return {f: stand_in(f) for group in get_overridable_functions().values() for f in group}
