"""How modules are sharded, computed with and saved: settings of `FullyShardedDataParallel`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "DataParallelMeshDims",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(enum.Enum):
    """What is divided among processes: parameters, gradients and state, or some of them."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When the next parameters are gathered in backward."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """What `state_dict` holds: all of it, or what this process has."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


class OptimStateKeyType(enum.Enum):
    """What the keys of an optimizer's state are."""

    PARAM_NAME = 1
    PARAM_ID = 2


@dataclass
class MixedPrecision:
    """The dtypes of `FullyShardedDataParallel`: of parameters in use, of gradients, of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of `fully_shard`: of parameters in use, of gradients, of results."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parameters that are not in use are kept in the CPU's memory."""

    offload_params: bool = False


@dataclass
class OffloadPolicy:
    """Where parameters are kept that are not in use: where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters that are not in use are kept in the CPU's memory."""

    pin_memory: bool = True


@dataclass
class DataParallelMeshDims:
    """Which dimensions of a grid of processes shard, and which replicate."""

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None


@dataclass
class StateDictConfig:
    """How `state_dict` is made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How the state of all processes is made, and whether the first alone gets it."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """How the state of this process is made."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How the parts of the state are made."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How the state of optimizers is made."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """How the optimizer's state of all processes is made, and whether the first alone gets it."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """How the optimizer's state of this process is made."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """How the parts of the optimizer's state are made."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `set_state_dict_type` has been told."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
