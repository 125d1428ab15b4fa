"""Whether automatic mixed precision has anything to do on CUDA."""

from __future__ import annotations

import taeda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device: then autocast and the GradScaler for it do nothing."""
    return not taeda.cuda.is_available()
