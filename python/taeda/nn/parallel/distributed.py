"""A module whose gradients are averaged over a group of processes: of one, here."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import taeda
from taeda.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taeda.distributed.algorithms.join import JoinHook

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over a group of processes.

    Groups have one process, so that gradients are the module's own.

    Args:
        module: what is trained. Its names gain the prefix ``module.`` in the ``state_dict``.
        device_ids: None, as for modules on the CPU.
        output_device: None, as for modules on the CPU.
        dim: kept.
        broadcast_buffers: whether processes would agree on buffers before each call.
        init_sync: whether processes would agree on parameters when this is made.
        process_group: the group; that of all processes by default.
        bucket_cap_mb: how many gradients to send at once; none are sent.
        find_unused_parameters: whether to wait for gradients that do not come; nobody waits.
        gradient_as_bucket_view: whether gradients share the memory that is sent; none is.
        static_graph: whether each call uses the same parameters.
        device_mesh: the group as a grid of one dimension, in place of ``process_group``.

    Raises:
        ValueError: there is no group; or ``device_ids`` names a device.
        RuntimeError: no parameter requires a gradient.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> model = taeda.nn.parallel.DistributedDataParallel(taeda.nn.Linear(3, 2))
    >>> model(taeda.ones(4, 3)).shape, list(model.state_dict())
    (taeda.Size([4, 2]), ['module.weight', 'module.bias'])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        device_mesh: Any = None,
    ) -> None:
        from taeda.distributed._group import _known

        super().__init__()
        if process_group is not None and device_mesh is not None:
            raise RuntimeError(
                "DistributedDataParallel: process_group and device_mesh cannot both be given"
            )
        if device_mesh is not None:
            process_group = device_mesh.get_group(0)
        self.process_group = _known(process_group)
        parameters = [p for p in module.parameters() if p.requires_grad]
        if not parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device are for GPUs, but the "
                f"module is on {parameters[0].device}"
            )
        self.module = module
        self.device_ids = None
        self.output_device = None
        self.device = parameters[0].device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.require_backward_grad_sync = True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block gradients are not averaged, but added up, as they are without it."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A block at whose end processes wait for those that have more batches: there are none."""
        yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What `distributed.algorithms.join.Join` would call: nothing has to be done."""
        from taeda.distributed.algorithms.join import JoinHook

        return JoinHook()

    @property
    def join_device(self) -> taeda.device:
        """The device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group
