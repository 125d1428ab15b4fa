"""Dropout: elements or whole channels set to zero at random."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from taeda._C import Tensor, ops

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Set each element to zero with probability p, and divide the others by 1 - p.

    Args:
        input: of any shape (Hinton et al., 2012).
        p: the probability.
        training: without it, the input is returned.
        inplace: overwrite the input.
        generator: the source of random numbers; by default the global one.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    _check(p)
    op = ops.dropout_ if inplace else ops.dropout
    return _draw(op, input, p, training, generator)


def _draw(
    op: Callable[..., Any], input: Tensor, p: float, training: bool, generator: Any
) -> Tensor:
    if generator is None:
        return op(input, p, training)
    return op(input, p, training, generator=generator)


def _dropped(
    op: Callable[..., Any], input: Tensor, p: float, training: bool, inplace: bool, generator: Any
) -> Tensor:
    _check(p)
    result = _draw(op, input, p, training, generator)
    return input.copy_(result) if inplace and result is not input else result


def alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Dropout that keeps the mean and variance of `selu` (Klambauer et al., 2017).

    The arguments are those of `dropout`.
    """
    return _dropped(ops.alpha_dropout, input, p, training, inplace, generator)


def feature_alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """`alpha_dropout` of whole channels; the input is of shape (N, C, ...)."""
    return _dropped(ops.feature_alpha_dropout, input, p, training, inplace, generator)


def dropout1d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Dropout of whole channels of an input (C, L) or (N, C, L) (Tompson et al., 2014).

    The arguments are those of `dropout`.

    Raises:
        RuntimeError: the input has another number of dimensions.
    """
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input."
        )
    batched = input.dim() == 3
    value = input if batched else input.unsqueeze(0)
    result = _dropped(ops.feature_dropout, value, p, training, inplace, generator)
    if batched:
        return result
    return input if inplace else result.squeeze(0)


def dropout2d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Dropout of whole channels of an input (N, C, H, W) (Tompson et al., 2014).

    A 3-dimensional input is taken as (N, C, L), with a warning; use `dropout1d` for it. The
    arguments are those of `dropout`.
    """
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and "
            "will result in an error in a future release.",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
            "dropout behavior is desired - input is interpreted as shape (N, C, L), where C is "
            "the channel dim.",
            stacklevel=2,
        )
    return _dropped(ops.feature_dropout, input, p, training, inplace, generator)


def dropout3d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Dropout of whole channels of an input (C, D, H, W) or (N, C, D, H, W).

    The arguments are those of `dropout`.
    """
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and "
            "will result in an error in a future release.",
            stacklevel=2,
        )
    batched = input.dim() != 4
    value = input if batched else input.unsqueeze(0)
    result = _dropped(ops.feature_dropout, value, p, training, inplace, generator)
    if batched:
        return result
    return input if inplace else result.squeeze(0)
