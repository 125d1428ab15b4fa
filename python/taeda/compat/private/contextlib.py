"""Stands for ``torch.utils._contextlib``: context managers that decorate functions too."""

from __future__ import annotations

from typing import Any

from taeda.autograd.grad_mode import _wrap

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Any) -> Any:
    """A function inside a context manager: `ctx` itself, or what calling it makes each time."""
    if callable(ctx) and hasattr(type(ctx), "__enter__"):
        raise AssertionError(f"{ctx} is both callable and a context manager: which is meant?")
    return _wrap(ctx if callable(ctx) else lambda: ctx, func)


class _DecoratorContextManager:
    """A base class of context managers, whose `clone` is entered around each call."""

    def __call__(self, orig_func: Any) -> Any:
        """Decorate a function, or, as is no longer advised, a class's construction."""
        if isinstance(orig_func, type):
            orig_func.__init__ = _wrap(self.clone, orig_func.__init__)  # type: ignore[misc]
            return orig_func
        return _wrap(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another such context manager. One with arguments replaces this."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments, whose class decorates without being called."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
