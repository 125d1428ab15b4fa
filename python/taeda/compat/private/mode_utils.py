"""Stands for ``torch.utils._mode_utils``: operations without the dispatch of classes."""

from __future__ import annotations

from taeda.utils._python_dispatch import no_dispatch

__all__ = ["no_dispatch"]
