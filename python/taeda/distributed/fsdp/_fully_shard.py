"""`fully_shard`: a module whose parameters are divided among processes; among one, it has all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from taeda.distributed._group import _known
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.nn.module import Module

from ._settings import DataParallelMeshDims, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "FSDPModule",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


class UnshardHandle:
    """What `FSDPModule.unshard` returns: the parameters are there."""

    def wait(self) -> None:
        """Wait for the parameters, which are there."""


class FSDPModule:
    """A module that `fully_shard` has been called with. This process has all of its parameters."""

    def reshard(self) -> None:
        """Free the parameters of other processes: there are none."""

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of all processes, which are here."""
        return UnshardHandle() if async_op else None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Say whether gradients are to be exchanged after the next backward: they never are."""

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Say whether gradients are to be exchanged: they never are."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Say whether gradients are to be summed over copies of the module: there is one."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Say whether to free parameters of others after forward: there are none."""

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Say whether to free parameters of others after backward: there are none."""

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters to gather early in forward; they are here."""

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Say whose parameters to gather early in backward; they are here."""


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

    A group has one process: parameters stay the tensors that they are, and the module becomes an
    `FSDPModule` of its class. What says how to divide and to gather chooses nothing.

    Args:
        module: a module, or a list of them.
        mesh: the processes; all by default.
        reshard_after_forward: whether to free parameters of others after forward.
        shard_placement_fn: along which dimension to divide a parameter.
        mp_policy: must not ask for other dtypes.
        offload_policy: where to keep parameters: they are in the CPU's memory.
        ignored_params: parameters that are not divided.
        dp_mesh_dims: what the grid's dimensions are for.

    Raises:
        NotImplementedError: ``mp_policy`` asks for another dtype.
        ValueError: a module is a list or a dict of modules, which has no forward.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> layer = dist.fsdp.fully_shard(taeda.nn.Linear(2, 1))
    >>> type(layer).__name__, isinstance(layer, dist.fsdp.FSDPModule)
    ('FSDPLinear', True)
    >>> dist.destroy_process_group()
    """
    from taeda.nn import ModuleDict, ModuleList

    policy = mp_policy or MixedPrecisionPolicy()
    if (policy.param_dtype, policy.reduce_dtype, policy.output_dtype) != (None, None, None):
        raise NotImplementedError(
            f"fully_shard: dtypes of {policy} are not supported; use autocast"
        )
    if mesh is None:
        init_device_mesh("cpu", (1,))
    else:
        _known(mesh.get_group(0))
    for each in module if isinstance(module, (list, tuple)) else [module]:
        if isinstance(each, (ModuleList, ModuleDict)):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {each}"
            )
        if not isinstance(each, FSDPModule):
            kind: Any = type(each)
            each.__class__ = _sharded(kind)
    return module


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
