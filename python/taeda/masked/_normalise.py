"""Functions that keep the shape of their input, of the elements that a mask lets through."""

from __future__ import annotations

import math
from typing import Any

from taeda._C import Tensor, ops
from taeda.masked._fill import converted, with_fill
from taeda.masked._reduce import norm


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums along ``dim``; elements that are left out add nothing."""
    return with_fill("cumsum", converted(input, dtype), mask, 0).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products along ``dim``; elements that are left out change nothing."""
    return with_fill("cumprod", converted(input, dtype), mask, 1).cumprod(dim)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax along ``dim``; 0 for elements that are left out, NaN where all are."""
    return ops.softmax(with_fill("softmax", converted(input, dtype), mask, -math.inf), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    return ops.log_softmax(with_fill("log_softmax", converted(input, dtype), mask, -math.inf), dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negative input."""
    return ops.softmax(-with_fill("softmin", converted(input, dtype), mask, math.inf), dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The input divided by its norm of order ``ord`` along ``dim``, but never by less than ``eps``.

    Elements that are left out become 0.
    """
    x = converted(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask).clamp_min(eps)
    return with_fill("normalize", x, mask, 0) / size


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The logarithm of the sum of two exponentials; masked-out elements add nothing."""
    a = with_fill("logaddexp", converted(input, dtype), input_mask, -math.inf)
    b = with_fill("logaddexp", converted(other, dtype), other_mask, -math.inf)
    return ops.logaddexp(a, b)
