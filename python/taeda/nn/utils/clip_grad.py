"""Limits on the size of gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import taeda
from taeda._C import Tensor, ops

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _listed(who: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    if not isinstance(tensors, Iterable):
        raise TypeError(f"{who}: '{type(tensors).__name__}' object is not iterable, nor a Tensor")
    return list(tensors)


def _grads(who: str, parameters: Any) -> list[Tensor]:
    return [p.grad for p in _listed(who, parameters) if p.grad is not None]


def _number(who: str, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{who}: {name}: {error}") from None


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all elements of several tensors, as if they were one vector.

    Args:
        tensors: one or several.
        norm_type: the p of the norm; `inf` for the largest absolute value.
        error_if_nonfinite: raise RuntimeError when the norm is infinite or not a number.
        foreach: taken for compatibility; there is one way to compute it.
    """
    values = _listed("get_total_norm", tensors)
    if not values:
        return taeda.tensor(0.0)
    with taeda.no_grad():
        total = ops._total_norm(values, _number("get_total_norm", "norm_type", norm_type))
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"clip_grad_norm_: The total norm of order {float(norm_type)} for gradients from "
            "`parameters` is non-finite, so it cannot be clipped. To disable this error and scale "
            "the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients, in place, by max_norm / total_norm where that is less than one.

    Args:
        parameters: the tensors whose gradients are scaled.
        max_norm: the norm to keep to.
        total_norm: the norm they have, from `get_total_norm`.
        foreach: taken for compatibility; there is one way to compute it.
    """
    who = "clip_grads_with_norm_"
    scale = (_number(who, "max_norm", max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    with taeda.no_grad():
        ops._scale_all_(_grads(who, parameters), scale)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients, in place, so that their common norm is at most `max_norm`.

    Args:
        parameters: the tensors whose gradients are scaled.
        max_norm: the norm to keep to.
        norm_type: the p of the norm; `inf` for the largest absolute value.
        error_if_nonfinite: raise RuntimeError when the norm is infinite or not a number.
        foreach: taken for compatibility; there is one way to compute it.

    Returns:
        the norm that they had.

    >>> p = taeda.zeros(2, requires_grad=True)
    >>> p.grad = taeda.tensor([3.0, 4.0])
    >>> taeda.nn.utils.clip_grad_norm_([p], 1.0)
    tensor(5.)
    """
    parameters = _listed("clip_grad_norm_", parameters)
    total = get_total_norm(
        _grads("clip_grad_norm_", parameters), norm_type, error_if_nonfinite, foreach
    )
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: `clip_grad_norm_` under its old name."""
    warnings.warn(
        "nn.utils.clip_grad_norm is now deprecated in favor of nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of the gradients, in place, to [-clip_value, clip_value].

    Args:
        parameters: the tensors whose gradients are limited.
        clip_value: the limit.
        foreach: taken for compatibility; there is one way to compute it.
    """
    with taeda.no_grad():
        limit = _number("clip_grad_value_", "clip_value", clip_value)
        ops._clamp_all_(_grads("clip_grad_value_", parameters), limit)
