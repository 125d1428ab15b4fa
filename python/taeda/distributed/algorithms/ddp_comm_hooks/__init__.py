"""Hooks for `DistributedDataParallel.register_comm_hook`."""

from . import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
