"""Modules each of whose processes computes a part (Shoeybi et al. 2019): tensor parallelism.

>>> import taeda.distributed as dist
>>> from taeda.distributed.tensor.parallel import (
...     ColwiseParallel,
...     RowwiseParallel,
...     parallelize_module,
... )
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> net = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.GELU(), taeda.nn.Linear(8, 4))
>>> mesh = dist.init_device_mesh("cpu", (1,))
>>> net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
>>> net(taeda.ones(2, 4)).shape, net[0].weight.placements
(taeda.Size([2, 4]), (Shard(dim=0),))
>>> dist.destroy_process_group()
"""

from .styles import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]
