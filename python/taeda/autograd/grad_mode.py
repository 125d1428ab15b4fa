"""Switching the recording of operations on and off, in this thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any, TypeVar, overload

from taeda import _C

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

_GENERATOR = 0x20  # inspect.CO_GENERATOR; that module is slow to import

F = TypeVar("F", bound=Callable[..., Any])


def _wrap(make: Callable[[], Any], func: F) -> F:
    """`func` inside `with make():`; a generator function is inside it whenever it runs."""
    code = getattr(func, "__code__", None)
    if code is not None and code.co_flags & _GENERATOR:
        return _wrap_generator(make, func)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def _wrap_generator(make: Callable[[], Any], func: F) -> F:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        running = func(*args, **kwargs)
        try:
            with make():
                item = running.send(None)
            while True:
                try:
                    answer = yield item
                except GeneratorExit:
                    with make():
                        running.close()
                    raise
                except BaseException as error:
                    with make():
                        item = running.throw(error)
                else:
                    with make():
                        item = running.send(answer)
        except StopIteration as stop:
            return stop.value

    return wrapper  # type: ignore[return-value]


class _GradMode(_C._GradSwitch):
    """A mode that takes no argument: `with mode():`, `@mode()` or `@mode`."""

    __slots__ = ()
    _on: bool

    @classmethod
    def _decorate(cls, func: Callable[..., Any]) -> Any:
        """What `mode(func)` makes."""
        return _wrap(cls, func)

    def __call__(self, func: F) -> F:
        """Decorate a function."""
        return _wrap(type(self), func)


class no_grad(_GradMode):
    """Operations are not recorded: results do not require gradients. A context or a decorator.

    >>> import taeda
    >>> x = taeda.ones(2, requires_grad=True)
    >>> with taeda.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __slots__ = ()
    _on = False


class enable_grad(_GradMode):
    """Operations are recorded, also inside `no_grad`. A context or a decorator.

    >>> import taeda
    >>> x = taeda.ones(2, requires_grad=True)
    >>> with taeda.no_grad(), taeda.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    __slots__ = ()
    _on = True


class set_grad_enabled:
    """Recording on or off by `mode`: from now on as a call, within the block as a context.

    >>> import taeda
    >>> x = taeda.ones(2, requires_grad=True)
    >>> with taeda.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ("_before", "mode")

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = _C._set_grad_enabled(mode)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_grad_enabled(self._before)

    def __call__(self, func: F) -> F:
        """Decorate a function; the mode outside is what it was before."""
        _C._set_grad_enabled(self._before)
        return _wrap(functools.partial(set_grad_enabled, self.mode), func)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode:
    """Like `no_grad`, for code whose tensors never meet autograd again. A context or a decorator.

    `inference_mode(False)` inside switches both inference mode and `no_grad` off; `mode` is what it
    was given.

    >>> import taeda
    >>> with taeda.inference_mode():
    ...     taeda.is_inference_mode_enabled()
    True
    """

    __slots__ = ("_grad", "_inference", "mode")

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        """A context; or, as a bare decorator, the wrapped function."""
        if isinstance(mode, bool):
            return super().__new__(cls)
        return _wrap(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self._inference = _C._set_inference_mode(self.mode)
        self._grad = _C._set_grad_enabled(not self.mode)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_inference_mode(self._inference)
        _C._set_grad_enabled(self._grad)

    def __call__(self, func: F) -> F:
        """Decorate a function."""
        return _wrap(functools.partial(inference_mode, self.mode), func)


class set_multithreading_enabled:
    """PyTorch's switch for backward passes in several threads; taeda's run in the caller's.

    It keeps nothing, as a call and as the context of a block.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass
