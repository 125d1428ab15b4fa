"""PyTorch's switches for precision and reproducibility."""

from __future__ import annotations

import warnings

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "use_deterministic_algorithms",
]

_precision = "highest"
_deterministic = False
_warn_only = False
_interop_threads = 1


def set_float32_matmul_precision(precision: str) -> None:
    """Say how exact products of float32 matrices must be; on the CPU they are always exact.

    Args:
        precision: ``"highest"``, ``"high"`` or ``"medium"``; the lower ones allow a GPU to round
            more. Anything else is warned of and changes nothing.
    """
    global _precision
    if precision in ("highest", "high", "medium"):
        _precision = precision
    else:
        warnings.warn(
            f"set_float32_matmul_precision: {precision!r} is not one of 'highest', 'high' or "
            "'medium'; nothing is changed",
            stacklevel=2,
        )


def get_float32_matmul_precision() -> str:
    """The last value passed to ``set_float32_matmul_precision``; initially ``"highest"``."""
    return _precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Request deterministic operations. In taeda all operations are deterministic anyway.

    Args:
        mode: what ``are_deterministic_algorithms_enabled`` then answers.
        warn_only: what ``is_deterministic_algorithms_warn_only_enabled`` then answers.
    """
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether ``use_deterministic_algorithms(True)`` has been called."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms(True, warn_only=True)`` has been called."""
    return _warn_only


def set_num_interop_threads(num: int) -> None:
    """Say how many operations may run at once. In taeda one runs after the other in each thread.

    Args:
        num: what ``get_num_interop_threads`` then answers.

    Raises:
        RuntimeError: ``num`` is not positive.
    """
    global _interop_threads
    if num < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive integer, got {num}")
    _interop_threads = num


def get_num_interop_threads() -> int:
    """The last value passed to ``set_num_interop_threads``; initially 1."""
    return _interop_threads
