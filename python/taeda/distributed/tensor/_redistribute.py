"""Moving the parts of a tensor among processes, from some placements to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.distributed import _collectives as plain
from taeda.distributed._types import ReduceOp

from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

if TYPE_CHECKING:
    from taeda.distributed.device_mesh import DeviceMesh

__all__ = ["Redistribute", "local_shape", "moved", "part_of"]

_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "max": ReduceOp.MAX, "min": ReduceOp.MIN}


def part_of(tensor: Tensor, mesh: DeviceMesh, dim: int, shard: Shard) -> Tensor:
    """The part of this process, where a dimension of the grid divides a tensor."""
    size, first = Shard.local_shard_size_and_offset(
        tensor.size(shard.dim), mesh.size(dim), mesh.get_local_rank(dim)
    )
    return tensor.narrow(shard.dim, first, size)


def dividing_order(placements: Sequence[Placement]) -> list[int]:
    """The dimensions of a grid, in the order in which they divide a tensor."""
    return sorted(
        range(len(placements)), key=lambda dim: isinstance(placements[dim], _StridedShard)
    )


def local_shape(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins."""
    sizes, starts = list(shape), [0] * len(shape)
    for dim in dividing_order(placements):
        placed = placements[dim]
        if isinstance(placed, Shard):
            size, first = Shard.local_shard_size_and_offset(
                sizes[placed.dim], mesh.size(dim), mesh.get_local_rank(dim)
            )
            starts[placed.dim] += first
            sizes[placed.dim] = size
    return tuple(sizes), tuple(starts)


def _gathered(local: Tensor, mesh: DeviceMesh, dim: int, shard: Shard, whole: int) -> Tensor:
    """All parts along a dimension of the grid, joined. The last may be smaller than the others."""
    count = mesh.size(dim)
    each = -(-whole // count)
    shape = list(local.shape)
    shape[shard.dim] = each
    padded = local
    if local.size(shard.dim) < each:
        padded = local.new_zeros(shape)
        padded.narrow(shard.dim, 0, local.size(shard.dim)).copy_(local)
    parts = [padded.new_empty(shape) for _ in range(count)]
    plain.all_gather(parts, padded.contiguous(), mesh.get_group(dim))
    return taeda.cat(parts, shard.dim).narrow(shard.dim, 0, whole)


def _sum_in_parts(local: Tensor, mesh: DeviceMesh, mesh_dim: int, dim: int) -> Tensor:
    """The part of this process of the sum of all processes' tensors."""
    parts = [part.contiguous() for part in local.chunk(mesh.size(mesh_dim), dim)]
    out = taeda.empty_like(parts[0])
    plain.reduce_scatter(out, parts, group=mesh.get_group(mesh_dim))
    return out


def moved(
    local: Tensor,
    shape: Sequence[int],
    mesh: DeviceMesh,
    before: Sequence[Placement],
    after: Sequence[Placement],
) -> Tensor:
    """The part of this process after placements change.

    Args:
        local: its part before.
        shape: of the whole tensor.
        mesh: the grid.
        before: how the tensor is placed.
        after: how it is to be placed.
    """
    changed = [i for i, (b, a) in enumerate(zip(before, after, strict=True)) if b != a]
    if not changed:
        return local
    strided = any(isinstance(p, _StridedShard) for p in (*before, *after))
    first = 0 if strided else changed[0]
    wanted = after[first]
    if len(changed) == 1 and before[first] == Partial() and isinstance(wanted, Shard):
        dim = wanted.dim % local.dim()
        if local.size(dim) % mesh.size(first) == 0:
            return _sum_in_parts(local, mesh, first, dim)
    order = dividing_order(before)
    for place in reversed(range(first, mesh.ndim)):
        dim = order[place]
        placed = before[dim]
        if isinstance(placed, Shard):
            larger = [p if d in order[:place] else Replicate() for d, p in enumerate(before)]
            sizes, _ = local_shape(shape, mesh, larger)
            local = _gathered(local, mesh, dim, placed, sizes[placed.dim])
        elif isinstance(placed, Partial) and not isinstance(after[dim], Partial):
            local = local.clone()
            plain.all_reduce(local, _OPS[placed.reduce_op], mesh.get_group(dim))
    for dim in dividing_order(after)[first:]:
        placed = after[dim]
        if isinstance(placed, Shard):
            local = part_of(local, mesh, dim, placed)
        elif isinstance(placed, Partial) and not isinstance(before[dim], Partial):
            if placed.reduce_op != "sum":
                raise NotImplementedError(f"DTensor: nothing is made {placed}")
            if mesh.get_local_rank(dim) != 0:
                local = taeda.zeros_like(local)
    return local.contiguous()


class Redistribute(Function):
    """Changes placements; the gradient's are changed back.

    The gradient is placed like the result, unless ``grads`` says how: where each process goes on
    with its own computation from a replicated tensor, gradients are `Partial`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        local: Tensor,
        shape: Sequence[int],
        mesh: DeviceMesh,
        before: Sequence[Placement],
        after: Sequence[Placement],
        grads: Sequence[Placement] | None = None,
    ) -> Tensor:
        ctx.shape, ctx.mesh, ctx.before = shape, mesh, before
        # The gradient of a part of a sum is that of the sum.
        ctx.grads = grads or [Replicate() if isinstance(p, Partial) else p for p in after]
        out = moved(local, shape, mesh, before, after)
        return out.clone() if out is local else out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        wanted = [Replicate() if isinstance(p, Partial) else p for p in ctx.before]
        back = moved(grad.contiguous(), ctx.shape, ctx.mesh, ctx.grads, wanted)
        return (back.clone() if back is grad else back), None, None, None, None, None
