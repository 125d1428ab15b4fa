"""PyTorch's switches for precision and reproducibility."""

from __future__ import annotations

import warnings

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "init_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_flush_denormal",
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
            operands to TF32, as ``backends.cuda.matmul.allow_tf32`` does. Anything else is warned
            of and changes nothing.
    """
    global _precision
    if precision in ("highest", "high", "medium"):
        from taeda.cuda import _library  # not loaded with taeda

        _precision = precision
        _library.set_switch("allow_tf32", precision != "highest")
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


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Say what operations that are not deterministic do: in taeda all are.

    Args:
        debug_mode: ``"default"`` or 0, ``"warn"`` or 1, ``"error"`` or 2.

    Raises:
        RuntimeError: it is something else.
        TypeError: it is neither a str nor an int.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_deterministic_debug_mode: expected a str or an int, got {debug_mode!r}"
        )
    if debug_mode not in (0, 1, 2, *_DEBUG_MODES):
        raise RuntimeError(
            "set_deterministic_debug_mode: expected 'default', 'warn', 'error', 0, 1 or 2, got "
            f"{debug_mode!r}"
        )
    level = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """What ``set_deterministic_debug_mode`` has been told: 0, 1 or 2."""
    return (1 if _warn_only else 2) if _deterministic else 0


def set_flush_denormal(mode: bool) -> bool:
    """Ask for very small numbers to become 0. taeda keeps them, so it returns False: refused."""
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# What the library has been built with. Fourier transforms are taeda's own.
has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True


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


def init_num_threads() -> None:
    """Take over the number of threads in a new thread. It is the same in all of them here."""
