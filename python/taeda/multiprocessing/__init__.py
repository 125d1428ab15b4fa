"""Python's ``multiprocessing``, with tensors that processes share.

Everything in ``multiprocessing`` is here under the same name. A tensor that is sent to another process,
through a Queue or a Pipe or as an argument, is moved to shared memory: both processes then see
the same values. The memory is a file without a name, gone with the last process that holds it.

>>> import taeda
>>> import taeda.multiprocessing as mp
>>> mp.get_sharing_strategy()
'file_descriptor'
>>> taeda.zeros(2).share_memory_().is_shared()
True
"""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *
from typing import Any

from ._reductions import register as _register
from ._spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_python.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """How tensors can be shared: by file descriptors."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """How tensors are shared: by file descriptors."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how tensors are shared; ValueError for any but ``"file_descriptor"``."""
    if new_strategy != _STRATEGY:
        raise ValueError(
            f"set_sharing_strategy: taeda shares by {_STRATEGY!r} only, got {new_strategy!r}"
        )


def __getattr__(name: str) -> Any:
    # What Python's module has beside its public names.
    return getattr(_python, name)


_register()
