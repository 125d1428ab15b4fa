"""`FullyShardedDataParallel`: a wrapper that divides parameters among processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda.distributed._collectives import broadcast
from taeda.distributed._group import _known
from taeda.distributed.device_mesh import DeviceMesh
from taeda.distributed.tensor import DTensor
from taeda.distributed.tensor._dtensor import part_like
from taeda.nn.module import Module
from taeda.utils._pytree import tree_map

from ._settings import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from ._unit import Unit, keep_apart, units_of
from .wrap import _wrap_below

if TYPE_CHECKING:
    from taeda.optim import Optimizer

__all__ = ["FullyShardedDataParallel"]

_NAME = "_fsdp_wrapped_module."
_DEFAULTS: dict[StateDictType, tuple[Any, Any]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Module):
    """A module whose parameters are divided among processes.

    It is `fully_shard` as a wrapper. In a group of one process parameters stay the module's own.

    Args:
        module: what is trained. Its ``state_dict`` has the same keys as without the wrapper.
        process_group: the processes; all by default.
        sharding_strategy: what is divided: FULL_SHARD, the default, frees parameters between
            forward and backward (ZeRO-3), SHARD_GRAD_OP does not (ZeRO-2).
            NO_SHARD is `DistributedDataParallel`.
        cpu_offload: whether parameters are kept in the CPU's memory, where they are.
        auto_wrap_policy: which modules below are gathered one by one; see `fsdp.wrap`.
        backward_prefetch: kept; parameters are gathered when they are needed.
        mixed_precision: must not ask for other dtypes.
        ignored_modules: modules that are not divided.
        param_init_fn: called with each module that has parameters on the meta device, to give them
            memory; ``to_empty`` and ``reset_parameters`` by default.
        device_id: the device, the CPU.
        sync_module_states: whether all processes get the parameters and buffers of the first.
        forward_prefetch: kept, like ``backward_prefetch``.
        limit_all_gathers: kept; one unit is gathered at a time.
        use_orig_params: True; parameters keep their names, and are DTensors.
        ignored_states: parameters that are not divided.
        device_mesh: the group as a grid, in place of ``process_group``; of two dimensions for
            ``HYBRID_SHARD``, in which each row of the grid divides parameters.

    Raises:
        ValueError: there is no group.
        NotImplementedError: ``mixed_precision`` asks for another dtype; or the strategy is a hybrid
            one without a grid of two dimensions, with several processes.
        RuntimeError: ``device_id`` is no CPU.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> model = dist.fsdp.FullyShardedDataParallel(taeda.nn.Linear(3, 2))
    >>> list(model.state_dict())
    ['weight', 'bias']
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        if device_mesh is not None:
            process_group = device_mesh.get_group(-1)
        for group in process_group if isinstance(process_group, tuple) else (process_group,):
            self.process_group = _known(group)
        wanted = mixed_precision or MixedPrecision()
        if (wanted.param_dtype, wanted.reduce_dtype, wanted.buffer_dtype) != (None, None, None):
            raise NotImplementedError(
                f"FullyShardedDataParallel: dtypes of {wanted} are not supported; use autocast"
            )
        if device_id is not None and taeda.device(device_id).type != "cpu":
            raise RuntimeError(f"FullyShardedDataParallel: there is no device {device_id}")
        _materialise(module, param_init_fn)
        mesh = device_mesh or DeviceMesh.from_group(self.process_group, "cpu")
        alone = mesh.size() == 1
        default = ShardingStrategy.NO_SHARD if alone else ShardingStrategy.FULL_SHARD
        self.sharding_strategy = sharding_strategy or default
        self._fsdp_wrapped_module = module
        if not alone:
            ignored = set(ignored_modules or ())
            states = [x for x in ignored_states or () if isinstance(x, Tensor)]
            ignored |= {x for x in ignored_states or () if isinstance(x, Module)}
            self._divide(auto_wrap_policy, sync_module_states, ignored, states, mesh)
        self._settings = _settings_of(StateDictType.FULL_STATE_DICT, None, None)
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix, with_module=True)

    def _divide(
        self,
        policy: Any,
        agree: bool,
        ignored: set[Module],
        states: list[Tensor],
        mesh: DeviceMesh,
    ) -> None:
        """Divide the parameters of the module, after wrapping those below it."""
        frees = {
            ShardingStrategy.FULL_SHARD: True,
            ShardingStrategy.SHARD_GRAD_OP: False,
            ShardingStrategy.HYBRID_SHARD: True,
            ShardingStrategy._HYBRID_SHARD_ZERO2: False,
        }
        strategy = self.sharding_strategy
        if strategy not in frees or (mesh.ndim == 2) != ("HYBRID" in strategy.name):
            raise NotImplementedError(
                f"FullyShardedDataParallel: {strategy} is not supported over {mesh}: hybrid "
                "strategies need a device_mesh of two dimensions, and DistributedDataParallel "
                "serves for NO_SHARD"
            )
        module = self._fsdp_wrapped_module
        if agree:
            with taeda.no_grad():
                for each in (*module.parameters(), *module.buffers()):
                    for group in mesh.get_all_groups():
                        broadcast(each.detach(), group=group, group_src=0)
        if policy is not None:

            def wrap(child: Module) -> FullyShardedDataParallel:
                return FullyShardedDataParallel(
                    child,
                    sharding_strategy=strategy,
                    ignored_modules=ignored,
                    ignored_states=states,
                    device_mesh=mesh,
                )

            _wrap_below(module, policy, ignored, wrap)
        kept = [*states, *(p for each in ignored for p in each.parameters())]
        object.__setattr__(module, "_fsdp_unit", Unit(module, mesh, frees[strategy], kept))

    @property
    def module(self) -> Module:
        """What is trained."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_wrapped_module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether this is not inside of another one."""
        unit = getattr(self._fsdp_wrapped_module, "_fsdp_unit", None)
        return unit is None or unit.is_root

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """All of them that are in a module."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    def set_units(self, units: int) -> None:
        """Let any number of processes compute the same bits, as `FSDPModule.set_units` does.

        Args:
            units: into how many parts the batch of all processes is divided, each of which has a
                backward pass; 0 ends it.

        Raises:
            TypeError: ``units`` is not an integer.
            ValueError: it is negative, or the number of processes does not divide it.
        """
        keep_apart("set_units", units_of(self), units)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block gradients are not averaged, but add up in each process."""
        units = units_of(self)
        before = [unit.sync for unit in units]
        for unit in units:
            unit.sync = False
        try:
            yield
        finally:
            for unit, sync in zip(units, before, strict=True):
                unit.sync = sync

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Within the block all parameters are here, as plain tensors.

        Args:
            module: a module.
            recurse: also for those below.
            writeback: keep changes; without it, parameters get their values back.
            rank0_only: for the first process alone, which this is.
            offload_to_cpu: keep them in the CPU's memory.
            with_grads: also gradients.
        """
        units = units_of(module)
        if with_grads and units:
            raise NotImplementedError("summon_full_params: gradients are not gathered")
        for unit in units:
            unit.gather()
        whole = {id(each.whole) for unit in units for each in unit._divided}
        others = [p for p in module.parameters() if id(p) not in whole]
        before = [] if writeback else [(p, p.detach().clone()) for p in others]
        try:
            yield
        finally:
            with taeda.no_grad():
                for p, value in before:
                    p.copy_(value)
                for unit in units:
                    if writeback:
                        unit.keep_changes()
                    unit.free()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """`nn.utils.clip_grad_norm_` of all parameters; the norm before."""
        norm = taeda.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    # ---- saving ----

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Say what ``state_dict`` holds: whole tensors, or (SHARDED_STATE_DICT) DTensors.

        Returns:
            The settings before.
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        made = _settings_of(state_dict_type, state_dict_config, optim_state_dict_config)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = made
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What `set_state_dict_type` has been told."""
        found = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        if not found:
            raise RuntimeError("there is no FullyShardedDataParallel in the module")
        return found[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """`set_state_dict_type` within the block."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for each in FullyShardedDataParallel.fsdp_modules(module):
                each._settings = before

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any] | None = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """An optimizer's state by the names of parameters.

        Args:
            model: whose parameters the optimizer has.
            optim: the optimizer.
            optim_state_dict: a state of it, in place of its present one.
            group: the processes.
        """
        from taeda.distributed.checkpoint.state_dict import _by_name

        named = _by_name(model, optim, optim_state_dict)
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        if settings.state_dict_type is not StateDictType.FULL_STATE_DICT:
            return named
        return tree_map(_whole, named)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What ``optim.load_state_dict`` takes, of a state by the names of parameters.

        Args:
            model: whose parameters the optimizer has.
            optim: the optimizer.
            optim_state_dict: what `optim_state_dict` has returned.
            is_named_optimizer: whether the optimizer takes names itself.
            load_directly: also load it.
            group: the processes.
        """
        from taeda.distributed.checkpoint.state_dict import _by_number

        if is_named_optimizer:
            return optim_state_dict
        made = _by_number(model, optim, optim_state_dict, strict=True)
        parameters = [p for group in optim.param_groups for p in group["params"]]
        for number, state in made["state"].items():
            for key, value in state.items():
                state[key] = part_like(value, parameters[number])
        if load_directly:
            optim.load_state_dict(made)
        return made


def _settings_of(
    kind: StateDictType,
    config: StateDictConfig | None,
    optim_config: OptimStateDictConfig | None,
) -> StateDictSettings:
    model, optim = _DEFAULTS[kind]
    config = model() if config is None else config
    optim_config = optim() if optim_config is None else optim_config
    for given, expected in ((config, model), (optim_config, optim)):
        if type(given) is not expected:
            raise RuntimeError(f"Expected a {expected.__name__} for {kind}, got {given}")
    return StateDictSettings(kind, config, optim_config)


def _materialise(module: Module, param_init_fn: Callable[[Module], None] | None) -> None:
    for each in module.modules():
        if not any(t.is_meta for t in (*each.parameters(recurse=False), *each.buffers(False))):
            continue
        if param_init_fn is not None:
            param_init_fn(each)
        else:
            each.to_empty(device="cpu", recurse=False)
            each.reset_parameters()  # type: ignore[attr-defined]


def _whole(value: Any) -> Any:
    """A copy of a value of an optimizer's state, of all of it."""
    if isinstance(value, DTensor):
        return value.full_tensor()
    return value.clone() if isinstance(value, Tensor) else value


def _without_prefix(module: Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    assert isinstance(module, FullyShardedDataParallel)
    settings = module._settings
    whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
    config = settings.state_dict_config
    for key in [k for k in state if k.startswith(prefix + _NAME)]:
        value = state.pop(key)
        if whole and isinstance(value, DTensor):
            value = value.full_tensor()
            if getattr(config, "rank0_only", False) and module.process_group.rank() != 0:
                continue
        state[prefix + key[len(prefix + _NAME) :]] = value


def _with_prefix(module: Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
    for key in [k for k in state if k.startswith(prefix)]:
        if not key.startswith(prefix + _NAME):
            state[prefix + _NAME + key[len(prefix) :]] = state.pop(key)
    own = {name: p for name, p in module.named_parameters() if isinstance(p, DTensor)}
    for name, p in own.items():
        if prefix + name in state:
            state[prefix + name] = part_like(state[prefix + name], p)
