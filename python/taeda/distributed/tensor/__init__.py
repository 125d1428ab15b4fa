"""Tensors that are spread over a grid of processes: of one, which has all of each.

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

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.utils._pytree import tree_leaves

from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]

Placements = Sequence[Placement] | None


class DTensor(Tensor):
    """A tensor of which each process of a grid has a part. `distribute_tensor` makes one.

    Results of operations are of this class too. They keep the placements of the first of the
    operands if they have its shape, and count as replicated otherwise.
    """

    _mesh: DeviceMesh
    _placed: tuple[Placement, ...]

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Placements = None,
        *,
        run_check: bool = False,
    ) -> DTensor:
        """Make one of the part that this process has, which is all of it."""
        return _made(local_tensor, device_mesh, placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The grid of processes."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it is placed along each dimension of the grid."""
        return self._placed

    def to_local(self, *, grad_placements: Placements = None) -> Tensor:
        """The part that this process has: all of it, as a plain tensor."""
        return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements: Placements = None) -> Tensor:
        """All of it, as a plain tensor."""
        return self.as_subclass(Tensor)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Placements = None
    ) -> DTensor:
        """The same tensor, placed otherwise."""
        return _made(self.as_subclass(Tensor), device_mesh or self._mesh, placements)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and say how its results are placed."""
        leaves = tree_leaves((args, kwargs or {}))
        first = next(x for x in leaves if isinstance(x, DTensor))
        if any(isinstance(x, Tensor) and not isinstance(x, DTensor) and x.dim() for x in leaves):
            raise RuntimeError(
                f"{getattr(func, '__name__', 'an operation')} got mixed Tensor and DTensor; "
                "distribute_tensor makes DTensors of the others"
            )
        result = super().__torch_function__(func, types, args, kwargs or {})
        for x in tree_leaves(result):
            if isinstance(x, DTensor) and "_mesh" not in x.__dict__:
                x._mesh = first._mesh
                same = x.dim() == first.dim() and tuple(x.size()) == tuple(first.size())
                x._placed = first._placed if same else (Replicate(),) * first._mesh.ndim
        return result

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self.as_subclass(Tensor).detach()!r}, "
            f"device_mesh={self._mesh!r}, placements={self._placed!r})"
        )


def _made(tensor: Tensor, mesh: DeviceMesh | None, placements: Placements) -> DTensor:
    mesh = init_device_mesh("cpu", (1,)) if mesh is None else mesh
    placed = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
    if len(placed) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found {len(placed)} "
            f"and {mesh.ndim}"
        )
    made = tensor.as_subclass(DTensor)
    made._mesh, made._placed = mesh, placed
    return made


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Spread a tensor over a grid of processes.

    Args:
        tensor: a leaf of the graph; the result is one too.
        device_mesh: the grid; all processes by default.
        placements: how to place it along each dimension of the grid; replicated by default.
        src_data_rank: the process whose tensor it is, which is this one.

    Raises:
        RuntimeError: the tensor is no leaf.
        ValueError: there is not one placement for each dimension of the grid.
    """
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors!")
    return _made(tensor.detach(), device_mesh, placements).requires_grad_(tensor.requires_grad)


def _factory(name: str) -> Any:
    def make(
        *size: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Placements = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> DTensor:
        made = getattr(taeda, name)(*size, **options)
        return _made(made, device_mesh, placements).requires_grad_(requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Make a DTensor as ``taeda.{name}`` makes a tensor."
    return make


empty = _factory("empty")
full = _factory("full")
ones = _factory("ones")
rand = _factory("rand")
randn = _factory("randn")
zeros = _factory("zeros")
