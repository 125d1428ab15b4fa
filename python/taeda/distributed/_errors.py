"""Errors of groups of processes."""

from __future__ import annotations

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "QueueEmptyError",
]


class DistError(RuntimeError):
    """Something about a group of processes went wrong."""


class DistBackendError(DistError):
    """A means of communication failed."""


class DistNetworkError(DistError):
    """A connection failed."""


class DistStoreError(DistError):
    """A store failed, or a key was not there in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue had nothing to take."""
