"""The groups of this process: making them, taking them apart, and asking about them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from datetime import timedelta
from typing import Any

import taeda

from ._errors import DistStoreError
from ._process_group import ProcessGroup, default_pg_timeout
from ._rendezvous import from_launcher, meet, meet_by_mpi
from ._stores import PrefixStore, Store
from ._types import Backend, BackendConfig, DebugLevel, names_of


class GroupMember:
    """The group of all processes, and what stands for a group that this process is not in."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class _WorldType(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, None where there is none."""
        return GroupMember.WORLD


class group(metaclass=_WorldType):
    """The group of all processes, as ``group.WORLD``."""


_groups: list[ProcessGroup] = []
_count = 0
_local_counts: Counter[str] = Counter()


def _add(
    backend: str,
    store: Store,
    ranks: list[int],
    rank: int,
    description: str,
    timeout: timedelta | None,
    name: str | None = None,
) -> ProcessGroup | None:
    """Make a group, in those of its members that this process is."""
    global _count
    if name is None:
        name = str(_count)
        _count += 1
    communicator = _communicator(ranks, name) if _by_mpi(backend) else None
    if rank not in ranks:
        return None
    made = ProcessGroup(
        backend, PrefixStore(name, store), ranks, rank, name, description,
        timeout or default_pg_timeout, communicator,
    )  # fmt: skip
    _groups.append(made)
    return made


def _by_mpi(backend: str) -> bool:
    return Backend.MPI in BackendConfig(backend).device_backend_map.values()


def _communicator(ranks: list[int], name: str) -> Any:
    """The ``MPI.Comm`` of some processes; their members alone must call this."""
    from ._mpi import module

    world = module().COMM_WORLD
    if len(ranks) == 1 or world.Get_rank() not in ranks:
        return None
    members = world.Get_group().Incl(ranks)
    # The tag tells apart groups that are being made at the same time.
    return world.Create_group(members, sum(name.encode()) % 1000)


def is_initialized() -> bool:
    """Whether there is a group of processes."""
    return GroupMember.WORLD is not None


def _world() -> ProcessGroup:
    if GroupMember.WORLD is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return GroupMember.WORLD


def _inside(given: Any) -> ProcessGroup | None:
    """A group, all processes by default; None, with a warning, where this process is not in it."""
    if given == GroupMember.NON_GROUP_MEMBER:
        warnings.warn("Running a collective in a group that this process is not in", stacklevel=4)
        return None
    return _known(given)


def _known(given: Any) -> ProcessGroup:
    if given is None:
        return _world()
    if given not in _groups:
        raise ValueError("The given group does not exist")
    return given


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the group of all processes. All of them call this.

    Args:
        backend: ``"gloo"``, which is sockets here, ``"mpi"``, or ``"nccl"`` for tensors of CUDA
            devices, beside which those of the CPU go by sockets; or one by device, such as
            ``"cpu:gloo,cuda:nccl"``. By default sockets, and NCCL where it is installed.
        init_method: ``"env://"`` (the default) reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
            from the environment, or what mpiexec and srun set in their place;
            ``"tcp://host:port"``, of a process with rank 0, and ``"file://path"``, of a file that
            all can open and that is not there yet, need the next two. MPI needs none of them.
        timeout: how long to wait for other processes, here and in each operation: 30 minutes by
            default.
        world_size: the number of processes.
        rank: the number of this process.
        store: where processes meet, in place of ``init_method``.
        group_name: ignored, as in PyTorch.
        pg_options: None; there are no options.
        device_id: the device of this process.

    Raises:
        ValueError: there is a group already, or the environment lacks something.
        RuntimeError: the backend is MPI without mpi4py, or NCCL without a GPU or the library; or
            other processes did not come in time, and the message says which.
        AssertionError: the backend is unknown, or both a store and an address are given.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> x = taeda.ones(2)
    >>> dist.all_reduce(x)
    >>> x, dist.get_rank(), dist.get_world_size()
    (tensor([1., 1.]), 0, 1)
    >>> dist.destroy_process_group()
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    names = [] if backend is None else names_of(backend)
    for name in names:
        assert name in Backend.backend_list, f"Unknown backend type {name}"
        if name == Backend.MPI:
            from ._mpi import module

            module()
        elif name == Backend.NCCL:
            from ._nccl import require

            require("init_process_group")
        elif name not in (Backend.GLOO, Backend.FAKE):
            raise RuntimeError(
                f"Distributed package doesn't have {name.upper()} built in: taeda's groups "
                "communicate by sockets ('gloo'), MPI ('mpi') or NCCL ('nccl')"
            )
    if pg_options is not None:
        raise TypeError(f"init_process_group: there are no pg_options for {backend}")
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    elif _by_mpi(backend or Backend.UNDEFINED):
        rank, world_size, store = meet_by_mpi(timeout or default_pg_timeout)
    else:
        rank, world_size, store = meet(
            init_method or "env://", rank, world_size, timeout or default_pg_timeout
        )
    if not 0 <= rank < world_size:
        raise RuntimeError(
            f"init_process_group: rank {rank} must be less than world_size {world_size}"
        )
    bound = _device("init_process_group", device_id)
    if world_size > 1 and Backend.FAKE in names:
        raise RuntimeError("init_process_group: the backend 'fake' has one process")
    _wait_for_all(store, rank, world_size, timeout or default_pg_timeout)
    GroupMember.WORLD = _add(
        backend or Backend.UNDEFINED, store, list(range(world_size)), rank, "default_pg", timeout
    )
    if GroupMember.WORLD is not None:
        GroupMember.WORLD.bound_device_id = bound


def _device(function: str, given: Any) -> Any:
    """A device that exists, None where none is given."""
    if given is None:
        return None
    device = taeda.device(given)
    if device.type == "cuda":
        if (device.index or 0) < taeda.cuda.device_count():
            return device
    elif device.type == "cpu":
        return None
    raise RuntimeError(f"{function}: there is no device {given}")


def _wait_for_all(store: Store, rank: int, size: int, timeout: timedelta) -> None:
    """Wait until all processes have come this far."""
    if size == 1:
        return
    store.set(f"here/{rank}", "1")
    if store.add("here", 1) == size:
        store.set("here/all", "1")
    try:
        store.wait(["here/all"], timeout)
    except DistStoreError as error:
        missing = [r for r in range(size) if not store.check([f"here/{r}"])]
        raise DistStoreError(
            f"init_process_group: timed out after {timeout.total_seconds():g} s; {len(missing)} of "
            f"{size} processes did not come: rank {', '.join(map(str, missing))}"
        ) from error


def destroy_process_group(group: Any = None) -> None:
    """Take a group apart, and end its connections: by default all groups.

    Raises:
        AssertionError: there is none.
    """
    global _count
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None or group is GroupMember.WORLD:
        assert GroupMember.WORLD is not None, "Process group cannot be None"
        GroupMember.WORLD = None
        for each in _groups:
            each.shutdown()
        _groups.clear()
        _local_counts.clear()
        _count = 0
        return
    _groups.remove(_known(group))
    group.shutdown()


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some processes. All processes call this, also those that are not in it.

    Args:
        ranks: which; None for all.
        timeout: how long its operations may take; 30 minutes by default.
        backend: as in `init_process_group`; that of all processes by default.
        pg_options: None; there are no options.
        use_local_synchronization: only the processes in ``ranks`` call this.
        group_desc: what the group is for.
        device_id: the device of this process.
        sort_ranks: number them in the order of their numbers among all, not in that of ``ranks``.

    Returns:
        The group; in processes that are not in it `GroupMember.NON_GROUP_MEMBER`.

    Raises:
        ValueError: a rank is out of range, or is there twice.
    """
    world = _world()
    if pg_options is not None:
        raise TypeError("new_group: there are no pg_options")
    bound = _device("new_group", device_id)
    members = list(range(world.size())) if ranks is None else list(ranks)
    for rank in members:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} "
                f"(world_size={world.size()})"
            )
    if not members or len(set(members)) != len(members):
        raise ValueError(f"new_group: expected different ranks, got {members}")
    if sort_ranks:
        members.sort()
    name = None
    if use_local_synchronization:
        # Others do not count this group, so that numbers would differ among processes.
        if world.rank() not in members:
            return GroupMember.NON_GROUP_MEMBER
        kind = "-".join(map(str, members))
        name = f"{kind}/{_local_counts[kind]}"
        _local_counts[kind] += 1
    made = _add(
        backend or world._backend, _root_store(world), members, world.rank(), group_desc or "",
        timeout, name,
    )  # fmt: skip
    if made is None:
        return GroupMember.NON_GROUP_MEMBER
    made.bound_device_id = bound
    return made


def _root_store(world: ProcessGroup) -> Store:
    assert isinstance(world._store, PrefixStore)
    return world._store.underlying_store


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Make groups of ``group_size`` processes each: this process's, and all of them.

    Args:
        group_size: how many in each; by default those of a machine, by LOCAL_WORLD_SIZE.
        group: the processes to divide; all by default.
        timeout: as in `new_group`, like the next three.
        backend: see there.
        pg_options: see there.
        group_desc: see there.

    Raises:
        ValueError: the size does not divide the number of processes.
    """
    given = _known(group)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", given.size()))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if given.size() < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({given.size()})"
        )
    if given.size() % group_size:
        raise ValueError(
            f"The world size ({given.size()}) must be divisible by 'group_size={group_size}'"
        )
    ranks = given._ranks
    lists = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Make groups of the ranks in lists: this process's, and all of them.

    Raises:
        ValueError: there are none, or a rank is in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    for rank, times in Counter(r for ranks in ranks_per_subgroup_list for r in ranks).items():
        if times > 1:
            raise ValueError(f"new_subgroups_by_enumeration: rank {rank} is in more than one group")
    rank = get_rank()
    mine: Any = None
    made = []
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if rank in ranks:
            mine = made[-1]
    return mine, made


def get_rank(group: Any = None) -> int:
    """The number of this process in a group: -1 for a group that it is not in."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return _known(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes of a group: -1 for a group that this one is not in."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return _known(group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of a group's means of communication."""
    return _known(group)._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """A group's means of communication by device, such as ``"cpu:gloo,cuda:gloo"``."""
    return str(BackendConfig(_known(group)._backend))


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The numbers of a group's processes among all."""
    return list(_known(group)._ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number, among all processes, of one in a group.

    Raises:
        ValueError: the group has no such number.
    """
    ranks = _known(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group.group_name}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of one among all processes.

    Raises:
        ValueError: it is not in the group.
    """
    ranks = _known(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group.group_name}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the environment: LOCAL_RANK, or what mpiexec
    and srun call it.

    Raises:
        RuntimeError: it is not set, and there is no ``fallback_rank``.
    """
    local = from_launcher("LOCAL_RANK")
    if local is not None:
        return int(local)
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
            "get_node_local_rank to work"
        )
    return int(fallback_rank)


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_groups)


def get_default_backend_for_device(device: Any) -> str:
    """The means of communication for a device, ``"gloo"`` for the CPU."""
    kind = taeda.device(device).type
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return "gloo" if kind == "cpu" else "nccl"


_debug_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """What `set_debug_level` was told."""
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Say how much to check and log; `flight_recorder` records all the same at each level."""
    global _debug_level
    _debug_level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Take the level from the environment's TORCH_DISTRIBUTED_DEBUG: OFF, INFO or DETAIL."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise RuntimeError(
            "The value of TORCH_DISTRIBUTED_DEBUG must be one of OFF, INFO or DETAIL"
        )
    set_debug_level(DebugLevel[word])


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process, which leaves a mark in its environment."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
