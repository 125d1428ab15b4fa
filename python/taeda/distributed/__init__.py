"""Whether processes can work together: not in this build. Everything else of it is missing.

>>> import taeda
>>> taeda.distributed.is_available(), taeda.distributed.is_initialized()
(False, False)
"""

from __future__ import annotations

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched"]


def is_available() -> bool:
    """Whether this build has distributed training: no."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes has been set up: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process, which leaves a mark in its environment."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
