"""Tools for signals: so far, window functions in :mod:`taeda.signal.windows`."""

from taeda.signal import windows

__all__ = ["windows"]
