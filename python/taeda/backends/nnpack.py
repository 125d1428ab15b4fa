"""NNPACK, which this build does not use; its switch keeps its setting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["flags", "is_available", "set_flags"]

_enabled = False


def is_available() -> bool:
    """Whether this build uses it: no."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set the switch; what it was before."""
    if not isinstance(_enabled, bool):
        raise RuntimeError(f"nnpack.set_flags: expected a bool, got {_enabled!r}")
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


@contextlib.contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Set the switch within the block; it chooses nothing."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
