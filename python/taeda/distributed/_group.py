"""The group of processes: it has one member, this process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import taeda

from ._stores import FileStore, HashStore, PrefixStore, Store
from ._types import Backend, BackendConfig, DebugLevel

default_pg_timeout = timedelta(seconds=1800)


class ProcessGroup:
    """A group of processes of which this one is the only member. `new_group` makes them.

    Args:
        backend: what the group was asked to communicate by.
        store: where members would find each other.
        name: the group's name.
        description: what it is for.
    """

    def __init__(self, backend: str, store: Store, name: str, description: str = "") -> None:
        self._backend = Backend(backend)
        self._store = store
        self.group_name = name
        self.group_desc = description or "undefined"
        self.bound_device_id: Any = None

    def rank(self) -> int:
        """The number of this process in the group: 0."""
        return 0

    def size(self) -> int:
        """How many processes there are: 1."""
        return 1

    def name(self) -> str:
        """The name of the means of communication."""
        return str(self._backend)

    def get_group_store(self) -> Store:
        """The group's part of the store."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long to wait for other processes; there are none."""

    def abort(self) -> None:
        """Give up what is under way: nothing is."""

    def shutdown(self) -> None:
        """End the group's connections; there are none."""


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
_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}
_count = 0


def _add(backend: str, store: Store, description: str = "") -> ProcessGroup:
    global _count
    made = ProcessGroup(backend, PrefixStore(str(_count), store), str(_count), description)
    _count += 1
    _groups.append(made)
    return made


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


def _is_outside(given: Any) -> bool:
    """Whether this process is not in a group; ValueError where there are no groups."""
    if given is None:
        _world()
        return False
    if given == GroupMember.NON_GROUP_MEMBER:
        warnings.warn("Running a collective in a group that this process is not in", stacklevel=4)
        return True
    _known(given)
    return False


def _known(given: Any) -> ProcessGroup:
    if given is None:
        return _world()
    if given not in _groups:
        raise ValueError("The given group does not exist")
    return given


def _refuse(size: int) -> NoReturn:
    raise RuntimeError(
        f"init_process_group: a group of {size} processes was asked for; taeda's have one, so "
        "start one process (WORLD_SIZE=1)"
    )


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return value


def _meet(url: str, rank: int, size: int) -> tuple[int, int, Store]:
    """The rank, the number of processes and the store that an address says."""
    parts = urlsplit(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    size = int(query.get("world_size", size))
    if parts.scheme == "env":
        rank = int(_from_environment("RANK")) if rank < 0 else rank
        size = int(_from_environment("WORLD_SIZE")) if size < 0 else size
        _from_environment("MASTER_ADDR")
        int(_from_environment("MASTER_PORT"))
        return rank, size, HashStore()
    if parts.scheme in _handlers:
        store, rank, size = next(iter(_handlers[parts.scheme](url)))
        return rank, size, store
    if parts.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {parts.scheme or url}://")
    for name, value in (("rank", rank), ("world size", size)):
        if value < 0:
            raise ValueError(
                f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: "
                f"{name} parameter missing"
            )
    return rank, size, FileStore(parts.path) if parts.scheme == "file" else HashStore()


def register_rendezvous_handler(
    scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]
) -> None:
    """Let a function find processes for addresses that begin with ``scheme``.

    Args:
        scheme: what is before ``://``.
        handler: given the address, yields the store, the rank and the number of processes.

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in ("env", "tcp", "file") or scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


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
    """Make the group of all processes, which has this one alone.

    Programs that a launcher starts in several processes run in one.

    Args:
        backend: ``"gloo"`` or, by device, ``"cpu:gloo"``; chosen by default.
        init_method: ``"env://"`` (the default) reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
            from the environment; ``"tcp://host:port"`` and ``"file://path"`` need the next two.
        timeout: how long to wait for other processes; there are none.
        world_size: the number of processes: 1.
        rank: the number of this process: 0.
        store: where processes would meet, in place of ``init_method``.
        group_name: ignored, as in PyTorch.
        pg_options: options of the backend; none is known.
        device_id: the device of this process, the CPU.

    Raises:
        ValueError: there is a group already, or the environment lacks something.
        RuntimeError: more than one process is asked for, or NCCL, which this build lacks.
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
    names = BackendConfig(backend or Backend.UNDEFINED).device_backend_map.values()
    for name in names:
        assert name in Backend.backend_list, f"Unknown backend type {name}"
        if name not in (Backend.GLOO, Backend.FAKE):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    else:
        rank, world_size, store = _meet(init_method or "env://", rank, world_size)
    if world_size != 1:
        _refuse(world_size)
    if rank != 0:
        raise RuntimeError(f"init_process_group: rank {rank} must be less than world_size 1")
    if device_id is not None and taeda.device(device_id).type != "cpu":
        raise RuntimeError(f"init_process_group: there is no device {device_id}")
    GroupMember.WORLD = _add(backend or Backend.UNDEFINED, store, "default_pg")


def destroy_process_group(group: Any = None) -> None:
    """Take a group apart: by default all groups.

    Raises:
        AssertionError: there is none.
    """
    global _count
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None or group is GroupMember.WORLD:
        assert GroupMember.WORLD is not None, "Process group cannot be None"
        GroupMember.WORLD = None
        _groups.clear()
        _count = 0
        return
    _groups.remove(_known(group))


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
    """Make another group of this process.

    Args:
        ranks: ``[0]``, or None for all processes.
        timeout: how long to wait for other processes; there are none.
        backend: as in `init_process_group`; that of all processes by default.
        pg_options: options of the backend; none is known.
        use_local_synchronization: whom the making waits for; there is nobody.
        group_desc: what the group is for.
        device_id: the device of this process, the CPU.
        sort_ranks: there is one.

    Raises:
        ValueError: there is another rank in ``ranks``.
    """
    world = _world()
    members = [0] if ranks is None else list(ranks)
    for rank in members:
        if rank != 0:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    if len(members) != 1:
        raise ValueError(f"new_group: expected the rank 0 once, got {members}")
    return _add(backend or world._backend, world._store, group_desc or "")


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Make groups of ``group_size`` processes, which must be 1: this process's, and all of them."""
    _known(group)
    if group_size is not None and group_size > 1:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    return new_subgroups_by_enumeration([[0]], timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Make groups of the ranks in lists: this process's, and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    if len(made) > 1:
        raise ValueError("new_subgroups_by_enumeration: rank 0 is in more than one group")
    return made[0], made


def get_rank(group: Any = None) -> int:
    """The number of this process in a group: 0, or -1 for a group that it is not in."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return _known(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes of a group: 1, or -1 for a group that this one is not in."""
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
    """The numbers of a group's processes: ``[0]``."""
    _known(group)
    return [0]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number, among all processes, of one in a group: the same number."""
    _known(group)
    return group_rank


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of one among all processes: the same number."""
    _known(group)
    return global_rank


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the environment's LOCAL_RANK.

    Raises:
        RuntimeError: it is not set, and there is no ``fallback_rank``.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
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
    """Say how much to check and log: there is nothing to check among one."""
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
