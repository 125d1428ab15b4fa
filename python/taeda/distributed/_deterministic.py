"""Whether values of processes are combined in the order of ranks, among however many."""

from __future__ import annotations

import os

__all__ = ["is_deterministic", "set_deterministic"]

_deterministic = os.environ.get("TAEDA_DETERMINISTIC_REDUCTIONS") == "1"


def set_deterministic(mode: bool) -> None:
    """Combine values of processes in the order of ranks, whatever their number.

    Among up to 16 processes that is so in any case; with more, trees and rings are faster. All
    processes must say the same. The environment variable ``TAEDA_DETERMINISTIC_REDUCTIONS=1`` says
    so from the start.

    Args:
        mode: whether to.

    Raises:
        TypeError: ``mode`` is not a bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_deterministic: mode must be a bool, not {mode!r}")
    global _deterministic
    _deterministic = mode


def is_deterministic() -> bool:
    """What `set_deterministic` was told."""
    return _deterministic
