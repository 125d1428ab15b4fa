"""Helpers of PyTorch's optimizers that optimizers from outside are written with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import taeda
from taeda import Tensor

T = TypeVar("T")


class _Required:
    """Stands where an option has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _use_grad_for_differentiable(step: Callable[..., T]) -> Callable[..., T]:
    """A decorator of ``step``: it records gradients only where ``defaults["differentiable"]``."""

    @functools.wraps(step)
    def decorated(self: Any, *args: Any, **kwargs: Any) -> T:
        with taeda.set_grad_enabled(bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return decorated


def _default_to_fused_or_foreach(
    params: Sequence[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to step by a fused kernel, or by lists of tensors: neither is faster on the CPU."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices that can capture steps in a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    """A number, also where a tensor holds it."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """A list of numbers as it is: nothing is compiled."""
    return x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex tensors in all lists by views as pairs of real numbers."""
    for i, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = taeda.view_as_real(tensors[i])


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., object] | None = None,
) -> Callable[[T], T]:
    """A decorator that returns its function as it is: there is no compiler to keep away."""

    def decorate(function: T) -> T:
        return function

    return decorate
