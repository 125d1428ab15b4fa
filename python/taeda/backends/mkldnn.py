"""oneDNN, once called MKL-DNN, which this build does not use; its switch keeps its setting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["enabled", "flags", "is_available"]

enabled = True


def is_available() -> bool:
    """Whether this build uses it: no."""
    return False


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Within the block, the switch is as ``enabled`` says; it chooses nothing, as do the others."""
    names = globals()
    before, names["enabled"] = names["enabled"], enabled
    try:
        yield
    finally:
        names["enabled"] = before
