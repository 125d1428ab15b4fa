"""What processes with unequal numbers of batches do, and hooks that communicate gradients."""

from . import ddp_comm_hooks, join

__all__ = ["ddp_comm_hooks", "join"]
