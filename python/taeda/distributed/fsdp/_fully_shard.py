"""`fully_shard`: a module whose parameters are divided among processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from taeda.distributed._group import _known, get_world_size
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.nn.module import Module

from ._settings import DataParallelMeshDims, MixedPrecisionPolicy, OffloadPolicy
from ._unit import Unit, keep_apart, units_of

__all__ = [
    "FSDPModule",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


class UnshardHandle:
    """What `FSDPModule.unshard` returns: parameters that are being gathered."""

    def __init__(self, unit: Unit | None = None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Wait for the parameters."""
        if self._unit is not None:
            self._unit.gather()


class FSDPModule:
    """A module that `fully_shard` has been called with.

    In a group of one process it has all of its parameters.
    """

    _fsdp_unit: Unit | None

    def _units(self, recurse: bool) -> Sequence[Unit]:
        if recurse:
            return units_of(self)  # type: ignore[arg-type]
        unit = getattr(self, "_fsdp_unit", None)
        return [] if unit is None else [unit]

    def reshard(self) -> None:
        """Free the memory of parameters but for this process's parts."""
        for unit in self._units(False):
            unit.free()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, but for those of other units below.

        Args:
            async_op: return a handle whose ``wait`` waits for them.
        """
        units = self._units(False)
        for unit in units:
            if async_op:
                unit.start_gathering()
            else:
                unit.gather()
        return UnshardHandle(units[0] if units else None) if async_op else None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Say whether gradients are to be divided after the next backward."""
        self.set_requires_gradient_sync(is_last_backward)

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Say whether gradients are to be averaged: if not, they add up in each process."""
        for unit in self._units(recurse):
            unit.sync = requires_gradient_sync

    def set_units(self, units: int, *, recurse: bool = True) -> None:
        """Let any number of processes compute the same bits.

        The batch of all processes is divided into ``units`` equal parts, and each process makes a
        backward pass for each of its parts. Their gradients are divided among processes, kept apart
        until the last of these passes, and then added up in the order of processes and passes;
        before that, parameters have none. A process keeps ``units`` gradients of its parameters'
        parts. Where losses are means, each is to be multiplied by the number of processes and
        divided by ``units``: exact, as the same bits need, where both are powers of 2. One process
        alone adds up the gradients of its passes in this order in any case.

        Args:
            units: how many parts; 0 ends it.
            recurse: also for the units below.

        Raises:
            TypeError: ``units`` is not an integer.
            ValueError: it is negative, or the number of processes does not divide it.
        """
        keep_apart("set_units", self._units(recurse), units)

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Say whether gradients are to be summed over the copies that a grid has.

        If not, they add up in each row of the grid, until the next backward after it is said again.
        """
        for unit in self._units(recurse):
            unit.sums_copies = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Say whether to free parameters between forward and backward."""
        for unit in self._units(recurse):
            unit.free_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Say whether to free parameters after backward, as is always done.

        Raises:
            NotImplementedError: they are to be kept.
        """
        if not reshard_after_backward:
            raise NotImplementedError("FSDPModule: parameters are freed after backward")

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters to gather while this module computes in forward."""
        self._gather_early("forward", modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters to gather while this module computes in backward."""
        self._gather_early("backward", modules)

    def _gather_early(self, when: str, modules: list[FSDPModule]) -> None:
        for unit in self._units(False):
            unit.gather_early[when] = [u for m in modules for u in m._units(False)]


@cache
def _sharded(kind: Any) -> Any:
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__doc__": kind.__doc__})


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[..., Any] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: DataParallelMeshDims | None = None,
) -> Any:
    """Divide a module's parameters among processes, in place, and return it.

    Parameters become DTensors, of which each process has a part along the first dimension. They are
    gathered while the module computes. It is called with the modules below first, each of which is
    gathered by itself, and with the whole model last. In a group of one process parameters stay the
    tensors that they are. The module becomes an `FSDPModule` of its class.

    Args:
        module: a module, or a list of them.
        mesh: the processes: in a row (all by default); or in a grid, each of whose rows divides the
            parameters, of which rows have copies, with gradients added up over both (HSDP).
            Parameters that `parallelize_module` has divided are divided further, where both meshes
            are parts of one, as ``mesh["dp"]`` and ``mesh["tp"]``.
        reshard_after_forward: whether to free parameters between forward and backward; by default
            it is done (ZeRO-3) but in the module that is called last. Without it (ZeRO-2)
            parameters are gathered once for each step.
        shard_placement_fn: None; parameters are divided along their first dimension.
        mp_policy: must not ask for other dtypes.
        offload_policy: where to keep parameters: they are in the CPU's memory.
        ignored_params: parameters that are not divided.
        dp_mesh_dims: None; the grid has one dimension.

    Raises:
        NotImplementedError: ``mp_policy`` asks for another dtype, or the grid has more than two
            dimensions, or parameters are on the meta device.
        ValueError: a module is a list or a dict of modules, which has no forward; or its
            parameters have different dtypes.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> layer = dist.fsdp.fully_shard(taeda.nn.Linear(2, 1))
    >>> type(layer).__name__, isinstance(layer, dist.fsdp.FSDPModule)
    ('FSDPLinear', True)
    >>> dist.destroy_process_group()
    """
    from taeda.nn import Module, ModuleDict, ModuleList

    policy = mp_policy or MixedPrecisionPolicy()
    if (policy.param_dtype, policy.reduce_dtype, policy.output_dtype) != (None, None, None):
        raise NotImplementedError(
            f"fully_shard: dtypes of {policy} are not supported; use autocast"
        )
    mesh = init_device_mesh("cpu", (get_world_size(),)) if mesh is None else mesh
    _known(mesh.get_group(0))
    if mesh.size() > 1 and (mesh.ndim > 2 or shard_placement_fn or dp_mesh_dims is not None):
        raise NotImplementedError(
            "fully_shard: parameters are divided along their first dimension, over a mesh of one "
            f"or two dimensions, not over {mesh}"
        )
    if not isinstance(reshard_after_forward, (bool, type(None))) and mesh.size() > 1:
        raise NotImplementedError("fully_shard: reshard_after_forward must be a bool or None")
    free = None if reshard_after_forward is None else bool(reshard_after_forward)
    for each in module if isinstance(module, (list, tuple)) else [module]:
        if not isinstance(each, Module):
            raise TypeError(f"fully_shard: module must be a Module, not {type(each).__name__}")
        if isinstance(each, (ModuleList, ModuleDict)):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {each}"
            )
        if not isinstance(each, FSDPModule):
            kind: Any = type(each)
            each.__class__ = _sharded(kind)
            if mesh.size() > 1:
                _divide(each, mesh, free, ignored_params or set())
    return module


def _divide(module: Any, mesh: DeviceMesh, free: bool | None, ignored: set[Any]) -> None:
    if any(p.is_meta for p in module.parameters()):
        raise NotImplementedError("fully_shard: parameters must have memory before")
    made = Unit(module, mesh, free is not False, ignored)
    made.frees_unless_root = free is None
    object.__setattr__(module, "_fsdp_unit", made)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Say that a method computes as forward does, so that it gathers parameters: they are here.

    Raises:
        ValueError: there is no such method.
    """
    if isinstance(module, FSDPModule) and not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")


def share_comm_ctx(modules: Iterable[FSDPModule]) -> None:
    """Let modules share their streams of communication: there are none."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {type(module)}")
