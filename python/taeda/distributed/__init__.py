"""Groups of processes that train together.

A launcher (``python -m taeda.distributed.run``, mpiexec, srun) starts a program several times. Each
process calls `init_process_group`, and then all of them call collectives, in the same order. A group
may have one process, so that a program runs alone too.

>>> import taeda.distributed as dist
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> parts = [taeda.zeros(2)]
>>> dist.all_gather(parts, taeda.ones(2))
>>> parts
[tensor([1., 1.])]
>>> dist.destroy_process_group()
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from . import distributed_c10d
from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import *

__all__ = [*distributed_c10d.__all__, "DeviceMesh", "init_device_mesh"]


def __getattr__(name: str) -> Any:
    full = f"taeda.distributed.{name}"
    if not name.startswith("_") and importlib.util.find_spec(full) is not None:
        return importlib.import_module(full)
    raise AttributeError(f"module 'taeda.distributed' has no attribute {name!r}")
