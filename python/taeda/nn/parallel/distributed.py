"""A module whose gradients are averaged over a group of processes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import taeda
from taeda.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taeda import Tensor
    from taeda.distributed._buckets import Reducer
    from taeda.distributed._work import Work
    from taeda.distributed.algorithms.join import JoinHook

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over a group of processes.

    Each process has the module, and computes with a part of the batch. Gradients are sent in
    buckets while backward goes on, in the order in which they come (Li et al. 2020), so that
    all processes make the same step.

    Args:
        module: what is trained. Its names gain the prefix ``module.`` in the ``state_dict``.
        device_ids: the device of a module that is on a GPU, to which inputs are moved; None leaves
            them where they are, as does a module on the CPU.
        output_device: the same device, or None.
        dim: along which ``units`` divide inputs.
        broadcast_buffers: whether buffers are those of the first process before each call.
        init_sync: whether all processes get the parameters and buffers of the first one here.
        process_group: the group; that of all processes by default.
        bucket_cap_mb: how many MiB of gradients are sent at once: 25 by default.
        find_unused_parameters: whether some calls do not use some parameters.
        gradient_as_bucket_view: whether gradients share the memory that is sent.
        static_graph: whether each call uses the same parameters in the same way; they may be
            used several times.
        device_mesh: the group as a grid of one dimension, in place of ``process_group``.
        units: into how many parts the batch of all processes is divided. Gradients are those of
            the parts, added up in their order, so that they have the same bits among any number of
            processes that is a power of 2 and divides it, where each process has the part of the
            batch that its rank says. It costs memory for a gradient of each part of a process.

    Raises:
        ValueError: there is no group; or ``device_ids`` is not the module's device.
        RuntimeError: no parameter requires a gradient, or processes have different ones.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> model = taeda.nn.parallel.DistributedDataParallel(taeda.nn.Linear(3, 2))
    >>> model(taeda.ones(4, 3)).shape, list(model.state_dict())
    (taeda.Size([4, 2]), ['module.weight', 'module.bias'])
    >>> dist.destroy_process_group()
    """

    _join: Any = None

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
        *,
        units: int | None = None,
    ) -> None:
        from taeda.distributed._group import _known

        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(
                f"DistributedDataParallel: module must be a Module, not {type(module).__name__}"
            )
        if bucket_cap_mb is not None and bucket_cap_mb < 0:
            raise ValueError(
                f"DistributedDataParallel: bucket_cap_mb must not be negative, got {bucket_cap_mb}"
            )
        if process_group is not None and device_mesh is not None:
            raise RuntimeError(
                "DistributedDataParallel: process_group and device_mesh cannot both be given"
            )
        if device_mesh is not None:
            process_group = device_mesh.get_group(0)
        self.process_group = _known(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        parameters = [p for _, p in named if p.requires_grad]
        if not parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        self.device = parameters[0].device
        self.device_ids = self._checked(device_ids, output_device)
        self.output_device = None if self.device_ids is None else self.device_ids[0]
        self.module = module
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        self.parameters_to_ignore = ignored
        self._everywhere = [p for _, p in named]
        self._sent_buffers = [b for n, b in module.named_buffers() if n not in ignored]
        self._divides_by_all = True
        if self.process_group.size() > 1:
            self._check_parameters(named)
            if init_sync:
                self._from_process(0, [*self._everywhere, *self._sent_buffers])
        self._units = None
        if units is not None:
            from taeda.distributed._units import Units

            self._units = Units(module, self.process_group, units, dim)
        self._trained = {n: p for n, p in named if p.requires_grad}
        self.reducer: Reducer | None = None
        if self._units is None and self.process_group.size() > 1:
            self.reducer = self._made_reducer()

    def _checked(self, ids: Sequence[Any] | None, output: Any) -> list[int] | None:
        """The index of the module's device, where inputs are to be moved there."""
        given = [*(ids or ()), *([] if output is None else [output])]
        devices = [
            taeda.device("cuda", d) if isinstance(d, int) else taeda.device(d) for d in given
        ]
        if any(device != self.device for device in devices):
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device are for GPUs, and name the "
                f"module's device, which is {self.device}, but they are {ids} and {output}"
            )
        return [self.device.index or 0] if ids else None

    def _made_reducer(self) -> Reducer:
        from taeda.distributed._buckets import Reducer

        return Reducer(
            list(self._trained), list(self._trained.values()), self.process_group,
            self.bucket_bytes_cap, self.find_unused_parameters, self.gradient_as_bucket_view,
            self.static_graph,
        )  # fmt: skip

    def _check_parameters(self, named: list[tuple[str, Any]]) -> None:
        """Processes must have the same parameters."""
        from taeda.distributed._objects import all_gather_object

        mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in named]
        found: list[Any] = [None] * self.process_group.size()
        all_gather_object(found, mine, self.process_group)
        for rank, theirs in enumerate(found):
            if theirs != mine:
                differ = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {rank} has "
                    f"{len(theirs)} params where this process has {len(mine)}; the first that "
                    f"differ: {differ[:1]}"
                )

    def _from_process(self, rank: int, tensors: Sequence[Tensor]) -> None:
        """Give all processes the tensors of one, sent together by their dtypes."""
        from taeda.distributed._collectives import broadcast

        for kind in dict.fromkeys((t.dtype, t.device) for t in tensors):
            group = [t.detach() for t in tensors if (t.dtype, t.device) == kind]
            flat = taeda.cat([t.reshape(-1) for t in group])
            broadcast(flat, group=self.process_group, group_src=rank)
            for t, part in zip(group, flat.split([t.numel() for t in group]), strict=True):
                t.copy_(part.view(t.shape))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids is not None:
            inputs, kwargs = self._moved((inputs, kwargs))
        syncs = taeda.is_grad_enabled() and self.require_backward_grad_sync
        if taeda.is_grad_enabled() and self._join is not None:
            self._announce(syncs)
        if self.process_group.size() > 1 and self.require_forward_param_sync:
            self._send_buffers()
        self.require_forward_param_sync = syncs or not taeda.is_grad_enabled()
        if self._units is not None:
            return self._units.forward(inputs, kwargs, syncs)
        output = self.module(*inputs, **kwargs)
        if self.reducer is not None and syncs:
            from taeda.utils._pytree import tree_leaves  # not for everyone who imports taeda.nn

            self.reducer.prepare([t for t in tree_leaves(output) if isinstance(t, taeda.Tensor)])
        return output

    def _moved(self, inputs: Any) -> Any:
        """Inputs, whose tensors are on the module's device."""
        from taeda.utils._pytree import tree_map

        return tree_map(lambda x: x.to(self.device) if isinstance(x, taeda.Tensor) else x, inputs)

    def _send_buffers(self) -> None:
        if self.broadcast_buffers and self._sent_buffers:
            root = 0 if self._join is None else self._common_rank(True)
            self._from_process(root, self._sent_buffers)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block gradients are not averaged, but added up in each process.

        The next backward outside of it averages the sums.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Callable[[Any, Any], Any]) -> None:
        """Let a function communicate gradients in place of the average.

        Args:
            state: what it is called with first.
            hook: called with the state and a `distributed.GradBucket`, it returns a Future of the
                tensor that takes the place of the bucket's buffer; see
                `distributed.algorithms.ddp_comm_hooks`.

        Raises:
            TypeError: it is no function.
            RuntimeError: there is one already, or ``units`` add up gradients.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._units is not None:
            raise RuntimeError("register_comm_hook: there are no buckets with units")
        if self.reducer is None:  # a group of one, which has nothing to send otherwise
            self.reducer = self._made_reducer()
        self.reducer.register(state, hook)

    # ---- processes with unequal numbers of batches ----

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A block for a loop over batches, of which other processes may have more.

        Args:
            divide_by_initial_world_size: whether the average counts processes that have run out.
            enable: False if all have equally many.
            throw_on_early_termination: raise in all processes when one has run out.
        """
        from taeda.distributed.algorithms.join import Join

        with Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        ):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this module does in a process that has no more batches."""
        from taeda.distributed._join_ddp import DDPJoinHook

        if self._units is not None:
            raise RuntimeError("DistributedDataParallel: units must be there in all processes")
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return DDPJoinHook(self)

    def _announce(self, syncs: bool) -> None:
        """Say that this process has another batch, and whether it averages gradients."""
        from taeda.distributed._collectives import all_reduce
        from taeda.distributed.algorithms.join import Join

        work: Work | None = Join.notify_join_context(self)
        if work is not None and self.reducer is not None:
            work.wait()
            if not self._divides_by_all:
                self.reducer.divisor = int(work.result()[0].item())
        all_reduce(taeda.tensor([float(syncs)]), group=self.process_group)

    def _common_rank(self, mine: bool) -> int:
        """The last process that says that it could be the one."""
        from taeda.distributed._collectives import all_reduce
        from taeda.distributed._types import ReduceOp

        rank = taeda.tensor([self.process_group.rank() if mine else -1])
        all_reduce(rank, ReduceOp.MAX, self.process_group)
        return int(rank.item())

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What there is here of the numbers that PyTorch logs; Lightning asks for them."""
        trained = self._trained.values()
        return {  # flags as 0 and 1
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(trained),
            "total_parameter_size_bytes": sum(p.nbytes for p in trained),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "broadcast_buffers": int(self.broadcast_buffers),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "can_set_static_graph": 0,  # nothing would be gained
        }

    @property
    def join_device(self) -> taeda.device:
        """The device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group
