"""What `strict` knows of one optimizer, and does before each of its steps."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taeda import _C

from . import _hooks
from ._checks import leaves_of, size_of

if TYPE_CHECKING:
    from taeda.optim import Optimizer

    from ._session import Session


class Watch:
    """What is known of one optimizer, whose ``step`` it replaces while it watches.

    Attributes:
        gradient: what is known of the gradient of one parameter, which is looked at in each step.
        roots: weak references to the modules that were called and have some of its parameters.
    """

    def __init__(self, optimizer: Optimizer, session: Session) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.name = type(optimizer).__name__
        self.roots: list[weakref.ref[Any]] = []
        smallest = min(self.parameters, key=size_of)
        self.gradient = _C._GradientWatch(smallest, session.accumulate)
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

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A ``step`` that checks first: quickly, for it runs in each step."""
        watch, session, is_usual = self, self.session, self.gradient.usual_step

        def strict_step(closure: Any = None) -> Any:
            if closure is not None:  # it computes the gradients later
                return step(closure)
            training = True
            for root in watch.roots:
                model = root()
                if model is not None and not model.training:
                    training = False
            if session.due or not training or not is_usual():
                session.before_step(watch)
            return step()

        def of_any_kind(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs) if args or kwargs else strict_step()

        alone = _hooks.takes_closure_alone(step)
        return functools.wraps(step)(strict_step if alone else of_any_kind)
