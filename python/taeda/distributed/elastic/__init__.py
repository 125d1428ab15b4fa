"""What programs ask of the launcher that has started them: `multiprocessing.errors.record`."""

from . import multiprocessing

__all__ = ["multiprocessing"]
