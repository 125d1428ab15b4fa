"""What processes with unequal numbers of batches do: `join`."""

from . import join

__all__ = ["join"]
