"""What `strict` knows of one optimizer, and does before each of its steps."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _hooks
from ._checks import leaves_of, size_of

if TYPE_CHECKING:
    from taeda.optim import Optimizer

    from ._session import Session


class Watch:
    """What is known of one optimizer, whose ``step`` it replaces while it watches.

    Attributes:
        sentinel: one of its parameters, whose gradient is looked at in each step.
        last: that gradient as the last step used it, and its version.
        backwards: of how many backwards the gradient is the sum.
        reused: a step had used it before.
        idle: neither a step nor a backward pass has touched the gradient lately.
        odd: `backwards` or `reused` are not as they are after one new backward pass.
        roots: weak references to the modules that were called and have some of its parameters.
    """

    def __init__(self, optimizer: Optimizer, session: Session) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.name = type(optimizer).__name__
        self.last: Any = None
        self.version = 0
        self.idle = False
        self._seen: tuple[Any, int] = (None, 0)  # the gradient before the last pass looked at
        self.backwards = 1
        self.reused = self.odd = False
        self.roots: list[weakref.ref[Any]] = []
        self.sentinel: Any = min(self.parameters, key=size_of)
        self.session = session
        _hooks.surround(optimizer, self.around)

    @property
    def parameters(self) -> list[Any]:
        """The optimizer's parameters."""
        optimizer = self.optimizer()
        return [] if optimizer is None else leaves_of(optimizer)

    def stop(self) -> None:
        """Give the optimizer its own ``step`` back."""
        optimizer = self.optimizer()
        if optimizer is not None:
            _hooks.release(optimizer, self.around)

    def counted(self, backwards: int, reused: bool) -> None:
        """Set of how many backwards the gradient is the sum."""
        self.backwards, self.reused = backwards, reused
        self.odd = reused or backwards != 1

    def left_alone(self, grad: Any) -> bool:
        """Whether a gradient is as it was before the last pass; quick checks then pass over it."""
        seen, version = self._seen
        self._seen = grad, grad._version
        self.idle = grad is seen and grad._version == version
        return self.idle

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A ``step`` that checks first: quickly, for it runs in each step."""
        watch, session = self, self.session

        def strict_step(closure: Any = None) -> Any:
            if closure is not None:  # it computes the gradients later
                return step(closure)
            grad = watch.sentinel.grad
            if watch.idle:
                watch.idle, session.patience = False, 0
            if grad is None or watch.odd:
                grad = session.examine(watch)
            elif grad is watch.last and grad._version == watch.version:
                session.stale(watch)
            for root in watch.roots:
                model = root()
                if model is not None and not model.training:
                    session.in_eval(model)
            if session.due:
                session.look_at_all(watch)
            watch.last = grad
            if grad is not None:
                watch.version = grad._version
            return step()

        def of_any_kind(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs) if args or kwargs else strict_step()

        alone = _hooks.takes_closure_alone(step)
        return functools.wraps(step)(strict_step if alone else of_any_kind)
