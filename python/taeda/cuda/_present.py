"""What :mod:`taeda.cuda` has where its library is installed."""

from __future__ import annotations

from typing import Any

from taeda.cuda import _devices, _streams

__all__ = ["members"]


def members() -> dict[str, Any]:
    """The functions and classes by name."""
    return {
        name: getattr(module, name) for module in (_devices, _streams) for name in module.__all__
    }
