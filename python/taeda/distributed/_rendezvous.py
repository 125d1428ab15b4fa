"""How processes find each other: their rank, their number and a store, from an address."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from ._stores import FileStore, HashStore, PrefixStore, Store
from ._tcp_store import TCPStore

__all__ = ["from_launcher", "meet", "meet_by_mpi", "register_rendezvous_handler"]

_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}

# What launchers call rank, number of processes and number on the machine: Open MPI, MPICH and Intel
# MPI, SLURM.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


def from_launcher(name: str) -> str | None:
    """RANK, WORLD_SIZE or LOCAL_RANK of the environment, or what mpiexec or srun calls it."""
    if "RANK" in os.environ or "WORLD_SIZE" in os.environ:
        return os.environ.get(name)
    for variables in _LAUNCHERS:
        if variables[0] in os.environ and variables[1] in os.environ:
            return os.environ.get(variables[_NAMES.index(name)])
    return os.environ.get(name)


def _first_host(nodes: str) -> str:
    """The first machine of SLURM's list, such as ``gpu[07-09,12],login``."""
    found = re.match(r"([^\[,]+)(?:\[(\w+))?", nodes)
    assert found is not None
    return found[1] + (found[2] or "")


def _master() -> tuple[str, int]:
    """Where rank 0 is, by the environment."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    slurm = os.environ.get("SLURM_JOB_NODELIST")
    if slurm and "SLURM_PROCID" in os.environ:
        address = address or _first_host(slurm)
        port = port or str(20000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 10000)
    for name, value in (("MASTER_ADDR", address), ("MASTER_PORT", port)):
        if value is None:
            raise _unset(name)
    return str(address), int(str(port))


def _unset(name: str) -> ValueError:
    return ValueError(
        "Error initializing torch.distributed using env:// rendezvous: environment variable "
        f"{name} expected, but not set"
    )


def meet(url: str, rank: int, size: int, timeout: timedelta) -> tuple[int, int, Store]:
    """The rank, the number of processes and the store that an address says.

    Args:
        url: ``env://``, ``tcp://host:port``, ``file://path`` or one with a handler of its own.
        rank: the number of this process, where the address does not say it; -1 if unknown.
        size: how many there are, likewise.
        timeout: how long to try to reach the first process.
    """
    parts = urlsplit(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    size = int(query.get("world_size", size))
    if parts.scheme == "env":
        return _meet_by_environment(rank, size, timeout)
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
    if parts.scheme == "file":
        return rank, size, FileStore(parts.path, size)
    if size == 1:
        return rank, size, HashStore()
    if parts.port is None:
        raise ValueError("tcp:// rendezvous: port number missing")
    return rank, size, _tcp(str(parts.hostname), parts.port, rank, size, timeout)


def _meet_by_environment(rank: int, size: int, timeout: timedelta) -> tuple[int, int, Store]:
    numbers = []
    for name, given in (("RANK", rank), ("WORLD_SIZE", size)):
        value = str(given) if given >= 0 else from_launcher(name)
        if value is None:
            raise _unset(name)
        numbers.append(int(value))
    rank, size = numbers
    address, port = _master()
    if size == 1:
        return rank, size, HashStore()
    store: Store
    if os.environ.get("TAEDA_AGENT_STORE") == "1":
        store = TCPStore(address, port, timeout=timeout)
    else:
        # PyTorch's torchrun keeps a store of its own at this port.
        port += os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        store = _tcp(address, port, rank, size, timeout)
    # What processes of an earlier attempt have left behind means nothing to this one.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT")
    return rank, size, store if attempt is None else PrefixStore(f"attempt{attempt}", store)


def meet_by_mpi(timeout: timedelta) -> tuple[int, int, Store]:
    """Rank and number of processes of MPI, and a store that its first process keeps."""
    from ._mpi import module

    world = module().COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    if size == 1:
        return 0, 1, HashStore()
    first = TCPStore("127.0.0.1", 0, is_master=True, timeout=timeout) if rank == 0 else None
    host, port = world.bcast((socket.gethostname(), first.port) if first else None)
    if host == socket.gethostname():
        host = "127.0.0.1"
    return rank, size, first or TCPStore(host, port, timeout=timeout)


def _tcp(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    return TCPStore(
        host, port, size, is_master=rank == 0, timeout=timeout, wait_for_workers=False,
        multi_tenant=True,
    )  # fmt: skip


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
