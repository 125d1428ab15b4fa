"""Listening to ``backward()`` and ``step()``: both are replaced while somebody listens.

An optimizer's ``step`` becomes an attribute of its own, which costs much less than hooks do.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
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

    @property
    def passes(self) -> Any:
        """None, or a `_C._BackwardWatch`: `Tensor.backward` asks it alone in usual passes."""


_listeners: list[Listener] = []
plain_backward: Any = Tensor.backward
_of_lists: Any = _C._run_backward
_method: Any = Tensor.__dict__["backward"]


# Named arguments are passed faster than *args and **kwargs.
@functools.wraps(plain_backward)
def told(
    self: Any,
    gradient: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    inputs: Any = None,
) -> Any:
    """`Tensor.backward` that tells the listeners."""
    plain = gradient is None and retain_graph is None and not create_graph and inputs is None
    given = () if plain else (gradient, retain_graph, create_graph, inputs)
    return _listened(self, lambda: plain_backward(self, *given), plain)


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
    _listeners.append(listener)
    _replace()


def leave(listener: Listener) -> None:
    """Tell it no more."""
    _listeners.remove(listener)
    _replace()


def _replace() -> None:
    quick = _listeners[0].passes if len(_listeners) == 1 else None
    replaced = bool(_listeners) and quick is None
    _C._watch_backward(quick)
    Tensor.backward = told if replaced else _method  # type: ignore[method-assign]
    _C._run_backward = _run_backward if _listeners else _of_lists


Step = Callable[..., Any]
Around = Callable[[Step], Step]


def surround(optimizer: Any, around: Around) -> None:
    """Have an optimizer's ``step`` be ``around(step)``."""
    own = optimizer.__dict__
    if "_around_step" not in own:
        base = own.get("step") or types.MethodType(type(optimizer).step, optimizer)
        own["_around_step"] = [("step" in own, base)]
    own["_around_step"].append((True, around))
    _rebuild(own)


def release(optimizer: Any, around: Around) -> None:
    """End what `surround` began."""
    own = optimizer.__dict__
    own["_around_step"].remove((True, around))
    _rebuild(own)


def takes_closure_alone(step: Step) -> bool:
    """Whether ``closure`` is all that a ``step`` takes; it is then passed on faster."""
    try:
        return list(inspect.signature(step).parameters) == ["closure"]
    except (TypeError, ValueError):
        return False


def _rebuild(own: dict[str, Any]) -> None:
    (given, step), *rest = own["_around_step"]
    for _, around in rest:
        step = around(step)
    if rest or given:
        own["step"] = step
    else:
        del own["step"]
    if not rest:
        del own["_around_step"]
