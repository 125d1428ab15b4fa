"""Tensors that are spread over a grid of processes.

>>> import taeda.distributed as dist
>>> from taeda.distributed.tensor import Shard, distribute_tensor
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> mesh = dist.init_device_mesh("cpu", (1,))
>>> x = distribute_tensor(taeda.ones(2, 2), mesh, [Shard(0)])
>>> (x + x).placements, (x + x).full_tensor()
((Shard(dim=0),), tensor([[2., 2.],
        [2., 2.]]))
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda.distributed.device_mesh import DeviceMesh

from ._dtensor import DTensor, Placements, distribute_module, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]


def _factory(name: str) -> Any:
    def make(
        *size: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Placements = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> DTensor:
        # All processes draw the same numbers, and keep their part.
        made = getattr(taeda, name)(*size, **options)
        return distribute_tensor(made, device_mesh, placements).requires_grad_(requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Make a DTensor as ``taeda.{name}`` makes a tensor."
    return make


empty = _factory("empty")
full = _factory("full")
ones = _factory("ones")
rand = _factory("rand")
randn = _factory("randn")
zeros = _factory("zeros")
