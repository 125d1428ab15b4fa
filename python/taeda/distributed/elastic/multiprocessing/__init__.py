"""Errors of processes that the launcher has started."""

from . import errors

__all__ = ["errors"]
