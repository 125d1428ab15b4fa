"""Groups of processes, and what they do together: the names of ``taeda.distributed``."""

from __future__ import annotations

import importlib.util

from . import _collectives, _errors, _messages, _objects, _stores, _tcp_store
from ._buckets import GradBucket
from ._coalescing import _coalescing_manager, _CoalescingManager  # noqa: F401
from ._collectives import *  # noqa: F403
from ._deterministic import is_deterministic, set_deterministic
from ._errors import *  # noqa: F403
from ._group import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_debug_level,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    set_debug_level,
    set_debug_level_from_env,
)
from ._group import _world as _get_default_group  # noqa: F401
from ._group import get_global_rank as _get_global_rank  # noqa: F401
from ._messages import *  # noqa: F403
from ._objects import *  # noqa: F403
from ._process_group import ProcessGroup, default_pg_timeout
from ._rendezvous import register_rendezvous_handler
from ._stores import *  # noqa: F403
from ._tcp_store import *  # noqa: F403
from ._types import Backend, BackendConfig, DebugLevel, ReduceOp
from ._work import Work

__all__ = [
    *_collectives.__all__,
    *_errors.__all__,
    *_messages.__all__,
    *_objects.__all__,
    *_stores.__all__,
    *_tcp_store.__all__,
    "Backend",
    "BackendConfig",
    "DebugLevel",
    "GradBucket",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_deterministic",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "reduce_op",
    "register_rendezvous_handler",
    "set_debug_level",
    "set_debug_level_from_env",
    "set_deterministic",
]


class reduce_op:
    """The names of `ReduceOp` in an older place."""

    SUM = ReduceOp.SUM
    PRODUCT = ReduceOp.PRODUCT
    MIN = ReduceOp.MIN
    MAX = ReduceOp.MAX


def is_available() -> bool:
    """Whether this build has groups of processes: yes."""
    return True


def is_backend_available(backend: str) -> bool:
    """Whether a means can be used: Gloo can, and MPI and NCCL where they are installed."""
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return Backend(backend) in known and known[Backend(backend)]()


def is_gloo_available() -> bool:
    """Whether the backend ``"gloo"`` can be used: yes, sockets serve it."""
    return True


def is_mpi_available() -> bool:
    """Whether MPI can be used: where mpi4py and an MPI library are installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether NCCL can be used: where it and taeda's CUDA library are installed."""
    from ._nccl import version

    return version() > 0


def is_ucc_available() -> bool:
    """Whether UCC can be used: no."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL can be used: no."""
    return False
