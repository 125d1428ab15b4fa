"""Attention: which implementation serves it, and attention with scores and masks of one's own."""

from __future__ import annotations

import contextlib
import contextvars
import enum
from collections.abc import Iterable, Iterator

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False  # PyTorch's switch; the CPU has one implementation


class SDPBackend(enum.IntEnum):
    """Names of implementations of `scaled_dot_product_attention`, for `sdpa_kernel`.

    On the CPU there is one implementation, which serves MATH and FLASH_ATTENTION.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_ALL = frozenset(SDPBackend) - {SDPBackend.ERROR}
_ON_CPU = {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION}
_allowed: contextvars.ContextVar[frozenset[SDPBackend]] = contextvars.ContextVar(
    "allowed_attention_backends", default=_ALL
)


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Within this context, let only some implementations serve `scaled_dot_product_attention`.

    Where none of them can, it raises RuntimeError.

    Args:
        backends: one or several.
        set_priority: prefer those that come first; there is never more than one to choose from.

    Raises:
        AssertionError: `backends` is something else.

    >>> from taeda.nn.attention import SDPBackend, sdpa_kernel
    >>> q = taeda.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     tuple(taeda.nn.functional.scaled_dot_product_attention(q, q, q).shape)
    (1, 1, 2, 4)
    """
    del set_priority  # there is one implementation, so there is no order
    listed = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(listed, Iterable) or not all(isinstance(b, SDPBackend) for b in listed):
        raise AssertionError(
            "sdpa_kernel: Backend must be an instance of SDPBackend or a list of SDPBackend "
            f"instances, got {type(backends).__name__}"
        )
    token = _allowed.set(frozenset(listed))
    try:
        yield
    finally:
        _allowed.reset(token)


def check_backend() -> None:
    """Raise RuntimeError unless an available implementation is enabled."""
    if not _allowed.get() & _ON_CPU:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found: on the CPU, "
            "sdpa_kernel() must allow MATH or FLASH_ATTENTION"
        )
