"""What a parameter's ``.grad`` holds: nothing, one backward's gradient, a sum, or a used one."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.optim import Optimizer

State = Literal["none", "zero", "fresh", "accumulated", "stale"]


@dataclass(frozen=True)
class GradientState:
    """What a ``.grad`` holds.

    Attributes:
        state: "none"; "zero", all of it; "fresh", of one backward; "accumulated", of several;
            or "stale", a step has used it and no backward has changed it since.
        backwards: of how many backwards it is the sum. Changes in place from outside, as
            clipping makes them, cannot be told from a backward, and count like one.
        used: a step has used a part of it.
    """

    state: State
    backwards: int = 0
    used: bool = False

    def __str__(self) -> str:
        if self.state == "accumulated":
            return f"sum of {self.backwards}" + (", used" if self.used else "")
        return self.state


class StepLog:
    """Remembers which gradients the steps of an optimizer have used."""

    def __init__(self) -> None:
        self._used: dict[int, tuple[weakref.ref[Any], int]] = {}

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """A hook for after a step."""
        self._used = {
            id(p): (weakref.ref(p.grad), p.grad._version)
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        }

    def version(self, parameter: Tensor, grad: Tensor) -> int | None:
        """The version of a gradient when it was last used, or None if it was not."""
        used, version = self._used.get(id(parameter), (lambda: None, 0))
        return version if used() is grad else None


_logs: weakref.WeakKeyDictionary[Any, StepLog] = weakref.WeakKeyDictionary()


def log_of(optimizer: Optimizer) -> StepLog:
    """The log of an optimizer, which begins when it is first asked for."""
    if optimizer not in _logs:
        _logs[optimizer] = log = StepLog()
        optimizer.register_step_post_hook(log)
    return _logs[optimizer]


def _used_version(parameter: Tensor, grad: Tensor, optimizer: Optimizer | None) -> int | None:
    if optimizer is None:
        return None
    watch = optimizer._watch  # of optimizers that know their parameters' names
    if watch is not None and parameter in watch._used:
        used, version = watch._used[parameter]
        if used() is grad:
            return version
    return log_of(optimizer).version(parameter, grad)


def gradient_state(parameter: Tensor, optimizer: Optimizer | None = None) -> GradientState:
    """What the gradient of a leaf holds.

    >>> x = taeda.ones(2, requires_grad=True)
    >>> str(gradient_state(x))
    'none'
    >>> x.sum().backward()
    >>> str(gradient_state(x))
    'fresh'
    >>> x.sum().backward()
    >>> str(gradient_state(x))
    'sum of 2'
    """
    grad: Any = parameter.grad
    if grad is None:
        return GradientState("none")
    used = _used_version(parameter, grad, optimizer)
    if used is not None:
        if used == grad._version:
            return GradientState("stale", 1, True)
        if not grad.is_sparse and not grad.any():
            return GradientState("zero")
        return GradientState("accumulated", 1 + grad._version - used, True)
    if grad._version == 0:
        return GradientState("fresh", 1)
    if not grad.is_sparse and not grad.any():
        return GradientState("zero")
    return GradientState("accumulated", 1 + grad._version)
