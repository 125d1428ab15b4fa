"""What asks a group of processes for something: there is none, and each of these says so."""

from __future__ import annotations

import enum
from typing import Any, NoReturn


class ProcessGroup:
    """Processes that work together. None can be made here; the class is for annotations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("ProcessGroup: this build has no groups of processes")


class ReduceOp(enum.Enum):
    """How the values of several processes are combined into one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class GroupMember:
    """The group of all processes, and what stands for a group that this process is not in."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class group:
    """The group of all processes: None, since there is none."""

    WORLD: ProcessGroup | None = None


class Backend(str):
    """The name of a means of communication, in lower case. None of them is available here."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"

    __slots__ = ()

    def __new__(cls, name: str) -> Backend:
        """A name, in lower case."""
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name}")
        return super().__new__(cls, name.lower())


def _needs_group(name: str, what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"distributed.{name}: Default process group has not been initialized, and cannot be: "
            "this build has no distributed training (distributed.is_available() is False)"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"{what}: ValueError, since there is no group of processes."
    return refuse


_OPERATIONS = {
    "all_gather": "Gather a tensor of each process in all of them",
    "all_gather_into_tensor": "Gather a tensor of each process into one, in all of them",
    "all_gather_object": "Gather an object of each process in all of them",
    "all_reduce": "Combine a tensor of each process in all of them",
    "all_to_all": "Send a tensor of a list to each process",
    "barrier": "Wait for all processes",
    "broadcast": "Send a tensor of one process to all",
    "broadcast_object_list": "Send objects of one process to all",
    "destroy_process_group": "Take a group apart",
    "gather": "Gather a tensor of each process in one",
    "gather_object": "Gather an object of each process in one",
    "get_backend": "The name of a group's means of communication",
    "get_process_group_ranks": "The numbers of a group's processes",
    "get_rank": "The number of this process in a group",
    "get_world_size": "The number of processes of a group",
    "new_group": "Make a group of some of the processes",
    "recv": "Receive a tensor",
    "reduce": "Combine a tensor of each process in one",
    "reduce_scatter": "Combine lists of tensors, and give each process one of the results",
    "scatter": "Send a tensor of one process's list to each",
    "send": "Send a tensor",
}
OPERATIONS = {name: _needs_group(name, what) for name, what in _OPERATIONS.items()}
