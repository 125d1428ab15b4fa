"""Checks of optimizers: their options, and the gradients before a step."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any, Literal

import taeda
from taeda import _C

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taeda import Tensor

    Named = Iterable[tuple[str, Tensor]]


def check_lr(who: str, lr: Any) -> None:
    """Raise unless ``lr`` is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, taeda.Tensor) and lr.numel() != 1:
        raise ValueError(f"{who}: a Tensor lr must have 1 element, got {lr.numel()}")
    if not isinstance(lr, (int, float, taeda.Tensor)) and not hasattr(lr, "__float__"):
        raise TypeError(f"{who}: lr must be a number or a Tensor, got {type(lr).__name__}")
    if not lr >= 0:
        raise ValueError(f"{who}: Invalid learning rate: {float(lr)}; it must be at least 0")


def check_at_least_0(who: str, **values: Any) -> None:
    """Raise unless every value is at least 0."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{who}: Invalid {name} value: {value}; it must be at least 0")


def check_betas(who: str, betas: Any) -> None:
    """Raise unless ``betas`` are numbers from 0 up to, but not including, 1."""
    if not isinstance(betas, (tuple, list)):
        raise TypeError(f"{who}: betas must be two numbers, got {type(betas).__name__}")
    for i, beta in enumerate(betas):
        if isinstance(beta, str):
            raise TypeError(f"{who}: betas[{i}] must be a number, got str")
        if not 0 <= beta < 1:
            raise ValueError(
                f"{who}: Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)"
            )


def check_fused(
    who: str, *, foreach: bool | None, differentiable: bool, fused: bool | None
) -> None:
    """Raise for options that are incompatible with ``fused=True``."""
    if fused and differentiable:
        raise RuntimeError(f"{who}: `fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError(f"{who}: `fused` and `foreach` cannot be `True` together")


def check_gradients(who: str, named: Named) -> None:
    """Raise for the first gradient that does not fit its parameter, or is sparse."""
    for name, param in named:
        grad = param.grad
        if grad is None:
            continue
        if grad.layout is not taeda.strided:
            raise RuntimeError(
                f"{who} does not support sparse gradients, which parameter {name} has; SGD, "
                "Adagrad and SparseAdam do"
            )
        if grad.shape != param.shape:
            raise RuntimeError(
                f"{who}.step: parameter {name} has shape {tuple(param.shape)}, but its "
                f"gradient has shape {tuple(grad.shape)}"
            )
        if grad.dtype != param.dtype or grad.device != param.device:
            raise RuntimeError(
                f"{who}.step: parameter {name} is {param.dtype!r} on {param.device}, but its "
                f"gradient is {grad.dtype!r} on {grad.device}"
            )


def _elements(grad: Tensor) -> Tensor:
    """A gradient, or the values of a sparse one."""
    return grad._values() if grad.is_sparse else grad


class GradientWatch:
    """Finds gradients that a step used before, or that are not finite.

    Args:
        stale: what to do about a gradient that has not changed since the last step: "error",
            "warn" (once), or "ignore".
        finite: raise for gradients that hold an infinity or NaN.
    """

    def __init__(self, stale: Literal["error", "warn", "ignore"], finite: bool) -> None:
        if stale not in ("error", "warn", "ignore"):
            raise ValueError(
                f"check_gradients: stale must be 'error', 'warn' or 'ignore', got {stale!r}"
            )
        self.stale = stale
        self.finite = finite
        # The gradient of each parameter's last step (a weak reference) and its version.
        self._used: dict[Any, tuple[weakref.ref[Any], int]] = {}

    def before_step(self, who: str, named: Named) -> None:
        """Look at the gradients of a group."""
        found = [(name, param) for name, param in named if param.grad is not None]
        if self.finite:
            self._check_finite(who, found)
        if self.stale != "ignore":
            self._check_stale(who, found)

    def after_step(self, params: Iterable[Any]) -> None:
        """Note the gradients that a group was stepped by."""
        if self.stale != "ignore":
            for param in params:
                if (grad := param.grad) is not None:
                    self._used[param] = weakref.ref(grad), grad._version

    def _check_finite(self, who: str, found: list[tuple[str, Any]]) -> None:
        grads = [_elements(param.grad) for _, param in found]
        # The largest magnitude of all is finite where every element is.
        if grads and not _C.ops._total_norm(grads, float("inf")).isfinite():
            bad = [name for name, param in found if not _elements(param.grad).isfinite().all()]
            raise RuntimeError(
                f"{who}.step: gradients that are not finite, of parameter {', '.join(bad)}; "
                "nothing in the group was changed"
            )

    def _check_stale(self, who: str, found: list[tuple[str, Any]]) -> None:
        stale = [name for name, param in found if self._is_stale(param)]
        if not stale:
            return
        text = (
            f"{who}.step: the gradient is the one of the last step, for parameter "
            f"{', '.join(stale)}: no backward() has reached it since. Call zero_grad() after a "
            "step, so that parameters without a new gradient are left alone"
        )
        if self.stale == "error":
            raise RuntimeError(text)
        self.stale = "ignore"
        warnings.warn(text, stacklevel=5)

    def _is_stale(self, param: Any) -> bool:
        if param not in self._used:
            return False
        used, version = self._used[param]
        grad: Any = param.grad
        is_same = used() is grad
        return is_same and grad is not None and grad._version == version
