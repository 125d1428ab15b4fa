"""`DTensor`: its memory is this process's part, its sizes are those of the whole tensor."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._C import ops
from taeda.distributed import _collectives as plain
from taeda.distributed._types import ReduceOp
from taeda.distributed.device_mesh import DeviceMesh
from taeda.nn.module import Module
from taeda.utils._pytree import tree_leaves, tree_map

from ._redistribute import Redistribute, dividing_order, part_of
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Placements", "distribute_module", "distribute_tensor"]

Placements = Sequence[Placement] | None

_GRAD: Any = Tensor.grad  # the descriptor of parts' gradients

# What can be done to each part by itself, beside elementwise operations.
_LOCAL = {
    "clone", "copy_", "detach", "empty_like", "ones_like", "rand_like", "randn_like", "zero_",
    "zeros_like", "_scale_all_", "requires_grad_", "contiguous", "uniform_", "normal_", "to", "cpu",
    "float", "double", "half", "bfloat16", "type",
}  # fmt: skip


@functools.cache
def _elementwise(name: str) -> bool:
    traits = _C._op_traits("elementwise")
    return bool(traits.get(name) or traits.get(name.removesuffix("_")))


def _is_local(name: str) -> bool:
    return name in _LOCAL or name.startswith("_foreach_") or _elementwise(name)


class DTensor(Tensor):
    """A tensor of which each process of a grid has a part. `distribute_tensor` makes one.

    Elementwise operations compute with the parts. Others gather the whole tensors first, and their
    results are replicated: right, and as slow as that is.
    """

    _mesh: DeviceMesh
    _placed: tuple[Placement, ...]
    _global: taeda.Size

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Placements = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> DTensor:
        """Make one of the parts that processes have.

        Args:
            local_tensor: this process's.
            device_mesh: the grid; all processes by default.
            placements: how the parts make the whole; replicated by default.
            run_check: give all processes the first one's part of what is replicated.
            shape: of the whole; by default that of parts which are all as large.
            stride: of the whole, which nothing depends on.
        """
        mesh, placed = _checked(device_mesh, placements)
        if run_check:
            local_tensor = local_tensor.contiguous()
            for dim, each in enumerate(placed):
                if isinstance(each, Replicate):
                    with taeda.no_grad():
                        group = mesh.get_group(dim)
                        plain.broadcast(local_tensor.detach(), group=group, group_src=0)
        if shape is None:
            sizes = list(local_tensor.shape)
            for dim, each in enumerate(placed):
                if isinstance(each, Shard):
                    sizes[each.dim] *= mesh.size(dim)
            shape = sizes
        return _made(local_tensor, mesh, placed, shape)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The grid of processes."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it is placed along each dimension of the grid."""
        return self._placed

    @property
    def shape(self) -> taeda.Size:
        """The sizes of the whole tensor."""
        return self._global if "_global" in self.__dict__ else Tensor.size(self)

    def size(self, dim: int | None = None) -> Any:
        """The sizes of the whole tensor, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """How many elements the whole tensor has."""
        return math.prod(self.shape)

    @property
    def grad(self) -> DTensor | None:
        """The gradient, placed as the tensor is."""
        local = _GRAD.__get__(self)
        return None if local is None else _made(local, self._mesh, self._placed, self._global)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        _GRAD.__set__(self, None if value is None else value.as_subclass(Tensor))

    def to_local(self, *, grad_placements: Placements = None) -> Tensor:
        """The part that this process has, as a plain tensor.

        Args:
            grad_placements: how its gradient is placed; like the tensor by default. A gradient
                that is `Partial` is added up over processes.
        """
        local = self.as_subclass(Tensor)
        if grad_placements is None or tuple(grad_placements) == self._placed:
            return local
        return Redistribute.apply(
            local, self._global, self._mesh, self._placed, self._placed, tuple(grad_placements)
        )

    def full_tensor(self, *, grad_placements: Placements = None) -> Tensor:
        """All of it, as a plain tensor, in all processes."""
        return self.redistribute(placements=[Replicate()] * self._mesh.ndim).to_local(
            grad_placements=grad_placements
        )

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Placements = None,
        *,
        async_op: bool = False,
    ) -> DTensor:
        """The same tensor, placed otherwise.

        Args:
            device_mesh: its grid; it cannot move to another.
            placements: how to place it; replicated by default.
            async_op: whether parts may arrive later; they are there.
        """
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("DTensor.redistribute: a tensor stays on its mesh")
        mesh, placed = _checked(self._mesh, placements)
        if placed == self._placed:
            return self
        local = Redistribute.apply(
            self.as_subclass(Tensor), self._global, mesh, self._placed, placed
        )
        return _made(local, mesh, placed, self._global)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation on parts, or on whole tensors."""
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        spread = [x for x in leaves if isinstance(x, DTensor)]
        first = spread[0]
        name = getattr(func, "__name__", "an operation")
        if "_mesh" not in first.__dict__:
            return super().__torch_function__(func, types, args, kwargs)
        if name.startswith("_fused_"):  # steps of optimizers, which get gradients as parts
            return super().__torch_function__(func, types, args, kwargs)
        if any(isinstance(x, Tensor) and not isinstance(x, DTensor) and x.dim() for x in leaves):
            raise RuntimeError(
                f"{name} got mixed Tensor and DTensor; distribute_tensor makes DTensors of the "
                "others"
            )
        alone = all(x._mesh.size() == 1 for x in spread)
        if name == "_total_norm" and not alone:
            return _total_norm(spread, *args[1:], **kwargs)
        same = all(x._placed == first._placed for x in spread if Tensor.dim(x))
        partial = any(isinstance(p, Partial) for x in spread for p in x._placed)
        whole = all(isinstance(p, Replicate) for x in spread for p in x._placed)
        same = same or name == "_scale_all_"  # each by itself, by one number
        if not alone and not whole and not (_is_local(name) and same and not partial):
            return _on_whole(func, name, args, kwargs)
        result = super().__torch_function__(func, types, args, kwargs)
        like = max(spread, key=Tensor.dim)
        for x in tree_leaves(result):
            if isinstance(x, DTensor) and "_mesh" not in x.__dict__:
                x._mesh = first._mesh
                as_before = Tensor.size(x) == Tensor.size(like)
                x._placed = like._placed if as_before else (Replicate(),) * first._mesh.ndim
                x._global = like._global if as_before else Tensor.size(x)
        return result

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self.as_subclass(Tensor).detach()!r}, "
            f"device_mesh={self._mesh!r}, placements={self._placed!r})"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a DTensor cannot be pickled: save full_tensor() or to_local(), or use "
            "distributed.checkpoint"
        )


def _on_whole(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Gather the tensors, and replicate the results."""
    if name.endswith("_") and not name.endswith("__"):
        raise NotImplementedError(f"DTensor: {name} does not change the parts of a tensor")
    mesh = next(x for x in tree_leaves((args, kwargs)) if isinstance(x, DTensor))._mesh
    args, kwargs = tree_map(
        lambda x: x.full_tensor() if isinstance(x, DTensor) else x, (args, kwargs)
    )

    def spread(x: Any) -> Any:
        return _made(x, mesh, None, x.shape) if isinstance(x, Tensor) else x

    return tree_map(spread, func(*args, **kwargs))


def _total_norm(tensors: Sequence[DTensor], norm_type: float = 2.0) -> DTensor:
    """The norm of all elements of all tensors, of the norms of parts."""
    first, power = tensors[0]._mesh, float(norm_type)
    kinds: dict[tuple[DeviceMesh, tuple[Placement, ...]], list[Tensor]] = {}
    for x in tensors:
        kinds.setdefault((x._mesh, x._placed), []).append(x.as_subclass(Tensor))
    norms = []
    for (mesh, placed), locals_ in kinds.items():
        norm = ops._total_norm(locals_, power).reshape(1)
        norm = norm if math.isinf(power) else norm.pow(power)
        for dim, each in enumerate(placed):
            if isinstance(each, Shard):
                op = ReduceOp.MAX if power > 0 else ReduceOp.MIN
                plain.all_reduce(
                    norm, op if math.isinf(power) else ReduceOp.SUM, mesh.get_group(dim)
                )
        norms.append(norm)
    joined = taeda.cat(norms)
    if math.isinf(power):
        total = joined.max() if power > 0 else joined.min()
    else:
        total = joined.sum().pow(1 / power)
    return _made(total, first, None, ())


def _checked(
    mesh: DeviceMesh | None, placements: Placements
) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    mesh = DeviceMesh("cpu") if mesh is None else mesh
    placed = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
    if len(placed) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found {len(placed)} "
            f"and {mesh.ndim}"
        )
    return mesh, placed


def _made(
    local: Tensor, mesh: DeviceMesh | None, placements: Placements, shape: Sequence[int]
) -> DTensor:
    mesh, placed = _checked(mesh, placements)
    made = local.as_subclass(DTensor)
    made._mesh, made._placed, made._global = mesh, placed, taeda.Size(shape)
    return made


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Spread a tensor over a grid of processes, each of which has all of it.

    Args:
        tensor: a leaf of the graph; the result is one too.
        device_mesh: the grid; all processes by default.
        placements: how to place it along each dimension of the grid; replicated by default.
        src_data_rank: the process, along each dimension of the grid, whose tensor it is; None if
            it is the same in all.

    Raises:
        RuntimeError: the tensor is no leaf.
        ValueError: there is not one placement for each dimension of the grid.
    """
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors!")
    mesh, placed = _checked(device_mesh, placements)
    local = tensor.detach()
    if src_data_rank is not None and mesh.size() > 1:
        local = local.clone()
        for dim in range(mesh.ndim):
            plain.broadcast(local, group=mesh.get_group(dim), group_src=src_data_rank)
    for dim in dividing_order(placed):
        each = placed[dim]
        if isinstance(each, Shard):
            local = part_of(local, mesh, dim, each)
        elif isinstance(each, Partial):
            raise RuntimeError(f"distribute_tensor: nothing is made {each}")
    if mesh.size() > 1:
        local = local.clone()
    return _made(local, mesh, placed, tensor.shape).requires_grad_(tensor.requires_grad)


def part_like(value: Any, like: Tensor) -> Any:
    """A whole tensor as a DTensor that is placed like another, if that is one of its shape."""
    if not isinstance(like, DTensor) or not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    if value.shape != like.shape:
        return value
    return distribute_tensor(value.detach(), like._mesh, like._placed, src_data_rank=None)


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Spread the parameters of a module over a grid, in place, and return it.

    Args:
        module: the module.
        device_mesh: the grid; all processes by default.
        partition_fn: called with the name of each module, the module and the grid, it replaces
            parameters by those of `distribute_tensor`; what it leaves is replicated.
        input_fn: called with the module, its inputs and the grid before forward.
        output_fn: called with the module, its output and the grid after forward.
    """
    mesh, _ = _checked(device_mesh, None)
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        for key, p in list(each._parameters.items()):
            if p is not None and not isinstance(p, DTensor):
                made = distribute_tensor(p.detach(), mesh)
                setattr(each, key, taeda.nn.Parameter(made, p.requires_grad))
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, output: output_fn(m, output, mesh))
    return module
