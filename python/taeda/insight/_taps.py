"""Listening to ``backward()``: `Tensor.backward` is replaced while somebody listens."""

from __future__ import annotations

import functools
from typing import Any, Protocol

from taeda import _C
from taeda._C import Tensor


class Listener(Protocol):
    """Something that wants to know of backward passes."""

    def before_backward(self, loss: Any, plain: bool) -> Any:
        """Called before a pass; `plain`: without arguments.

        Returns:
            None, or a function to call after the pass.
        """


_listeners: list[Listener] = []
_of_tensors: Any = Tensor.backward
_of_lists: Any = _C._run_backward
_method: Any = Tensor.__dict__["backward"]


@functools.wraps(_of_tensors)
def _backward(self: Any, *args: Any, **kwargs: Any) -> Any:
    if len(_listeners) == 1 and not args and not kwargs:
        after = _listeners[0].before_backward(self, True)
        result = _of_tensors(self)
        if after is not None:
            after()
        return result
    return _listened(self, lambda: _of_tensors(self, *args, **kwargs), not args and not kwargs)


def _run_backward(roots: Any, *args: Any) -> Any:
    if len(roots) != 1 or not isinstance(roots[0], Tensor):
        return _of_lists(roots, *args)
    return _listened(roots[0], lambda: _of_lists(roots, *args), not args[1])


def _listened(loss: Any, run: Any, plain: bool) -> Any:
    waiting = [listener.before_backward(loss, plain) for listener in _listeners]
    result = run()
    for after in waiting:
        if after is not None:
            after()
    return result


def listen(listener: Listener) -> None:
    """Tell a listener of every backward pass from now on."""
    if not _listeners:
        Tensor.backward = _backward  # type: ignore[method-assign]
        _C._run_backward = _run_backward
    _listeners.append(listener)


def leave(listener: Listener) -> None:
    """Tell it no more."""
    _listeners.remove(listener)
    if not _listeners:
        Tensor.backward = _method  # type: ignore[method-assign]
        _C._run_backward = _of_lists
