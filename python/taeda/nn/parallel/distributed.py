"""The class of modules that train in several processes, of which this build has no group."""

from __future__ import annotations

from typing import Any

from taeda.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over a group of processes.

    There are no such groups (``distributed.is_available()`` is False), so none can be made; the
    class is there for code that asks whether a module is one.

    Args:
        module: what would be trained.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"DistributedDataParallel({type(module).__name__}): this build has no groups of "
            "processes (distributed.is_available() is False); use the module as it is"
        )
