"""Whether processes can work together: not in this build.

Questions are answered as in a process without a group. What needs a group raises ValueError, as it
does in PyTorch where ``init_process_group`` has not been called; that function is missing here.

>>> import taeda
>>> taeda.distributed.is_available(), taeda.distributed.is_initialized()
(False, False)
"""

from __future__ import annotations

from ._group import (
    OPERATIONS,
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    group,
)

globals().update(OPERATIONS)

__all__ = [
    *OPERATIONS,
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]


def is_available() -> bool:
    """Whether this build has distributed training: no."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes has been set up: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a means of communication can be used: none can."""
    Backend(backend)
    return False


def is_gloo_available() -> bool:
    """Whether Gloo can be used: no."""
    return False


def is_mpi_available() -> bool:
    """Whether MPI can be used: no."""
    return False


def is_nccl_available() -> bool:
    """Whether NCCL can be used: no."""
    return False


def is_ucc_available() -> bool:
    """Whether UCC can be used: no."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL can be used: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process, which leaves a mark in its environment."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
