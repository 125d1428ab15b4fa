"""`ProcessGroup`: its processes, what carries their messages, how operations are performed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

from . import flight_recorder
from ._algorithms import Channel, view_bytes
from ._deterministic import is_deterministic
from ._errors import DistBackendError
from ._shared import SharedMemory
from ._stores import PrefixStore, Store
from ._tcp import SocketTransport, address_of
from ._transport import Late, Lost, NoPeers, Transfer, Transport
from ._types import Backend, BackendConfig, ReduceOp
from ._work import Runner, Work

if TYPE_CHECKING:
    from ._nccl_group import NcclGroup

default_pg_timeout = timedelta(seconds=1800)

Coalesced = tuple[str, Callable[[Channel], None], list[Tensor]]  # name, body and result


class ProcessGroup:
    """A group of processes. `new_group` makes them.

    Args:
        backend: what the group was asked to communicate by.
        store: where members find each other.
        ranks: the numbers of its members among all processes; this process is one of them.
        rank: the number of this process among all.
        name: the group's name.
        description: what it is for.
        timeout: how long an operation may take.
        communicator: the members' ``MPI.Comm``, where MPI carries the messages.
    """

    def __init__(
        self,
        backend: str,
        store: Store,
        ranks: Sequence[int],
        rank: int,
        name: str,
        description: str = "",
        timeout: timedelta = default_pg_timeout,
        communicator: Any = None,
    ) -> None:
        self._backend = Backend(backend)
        self._store = store
        self._ranks = list(ranks)
        self._rank = self._ranks.index(rank)
        self._timeout = timeout
        self._sequence = 0
        self._broken = ""
        self._runner = Runner(f"taeda group {name}")
        self._current = 0  # the operation that is being performed
        self._said = 0
        self._memory: SharedMemory | None = None
        self._memory_sought = False
        self._by_device = BackendConfig(backend).device_backend_map
        self._nccl: NcclGroup | None = None
        self._coalesced: list[Coalesced] | None = None  # operations that are to begin together
        self.group_name = name
        self.group_desc = description or "undefined"
        self.bound_device_id: Any = None
        # Messages from one process to another have connections of their own, on which a thread
        # moves what nobody waits for.
        self._transport, self._post = self._transports(communicator)
        self._transport.watch = self._watch
        self._post.watch = lambda: self._given_up()

    def _transports(self, communicator: Any) -> tuple[Transport, Transport]:
        if len(self._ranks) == 1:
            return NoPeers(), NoPeers()
        if communicator is not None:
            from ._mpi import MPITransport

            return MPITransport(communicator), MPITransport(communicator.Dup())
        address = address_of(self._store)
        first, second = (
            SocketTransport(
                PrefixStore(name, self._store), self._rank, len(self._ranks), address, background
            )
            for name, background in (("collectives", False), ("messages", True))
        )
        return first, second

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return len(self._ranks)

    def name(self) -> str:
        """The name of the means of communication."""
        return str(self._backend)

    def get_group_store(self) -> Store:
        """The group's part of the store."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long an operation may take."""
        self._timeout = timeout

    def abort(self) -> None:
        """Give up what is under way: it fails in all processes."""
        self._break(f"process {self._ranks[self._rank]} has called abort()")

    def shutdown(self) -> None:
        """End the group's connections."""
        if self._nccl is not None and not self._broken:
            self._nccl.shutdown()
        self._runner.end()
        self._broken = self._broken or "the group has been shut down"
        self._transport.close()
        self._post.close()

    # ---- operations ----

    def _collective(
        self,
        name: str,
        body: Callable[[Channel], None],
        result: list[Tensor],
        async_op: bool = False,
        timeout: timedelta | None = None,
    ) -> Work | None:
        """Perform an operation in which all take part, or begin to.

        Args:
            name: of the operation.
            body: performs it on a channel.
            result: what it writes.
            async_op: begin it, and return what to wait for.
            timeout: how long it may take; the group's by default.
        """
        if self._coalesced is not None:
            self._coalesced.append((name, body, result))
            return None
        self._sequence += 1
        sequence = self._sequence
        dtype = str(result[0].dtype) if result else ""
        sizes = [list(t.shape) for t in result]
        record = flight_recorder._add(self.group_name, sequence, name, sizes, dtype)
        seconds = (timeout or self._timeout).total_seconds()
        if result and result[0].is_cuda:
            begun = self._nccl_group(name).begin(name, body, result, seconds, record, sequence)
            if async_op:
                return begun
            begun.wait()
            return None
        deterministic = is_deterministic()

        def job() -> None:
            record.start()
            self._current = sequence
            try:
                self._check_whole(name)
                channel = Channel(
                    self._transport, sequence, seconds, deterministic, self._shared_memory
                )
                with taeda.no_grad():
                    body(channel)
            except Exception as error:
                failure = self._failure(name, sequence, error, seconds)
                record.end(str(failure))
                flight_recorder._dump_failure(self._ranks[self._rank])
                raise failure from error
            record.end()

        if async_op:
            return self._runner.begin(job, result)
        self._runner.perform(job)
        return None

    def _nccl_group(self, name: str) -> NcclGroup:
        """What performs operations on CUDA tensors."""
        if self._nccl is None:
            if self._by_device.get("cuda") != Backend.NCCL:
                raise RuntimeError(
                    f"{name}: No backend type associated with device type cuda: the group has "
                    f"{self._backend!s}, and tensors of GPUs need 'nccl'"
                )
            from ._nccl import require
            from ._nccl_group import NcclGroup

            require(name)
            self._nccl = NcclGroup(self)
        return self._nccl

    def _shared_memory(self, channel: Channel) -> SharedMemory | None:
        """The memory of all processes, made when it is first asked for, by all of them."""
        if not self._memory_sought:
            self._memory_sought = True
            wanted = os.environ.get("TAEDA_SHARED_MEMORY") != "0"
            sockets = isinstance(self._transport, SocketTransport)
            if wanted and sockets and self._transport.one_machine():  # type: ignore[attr-defined]
                self._memory = self._made_memory(channel)
        return self._memory

    def _made_memory(self, channel: Channel) -> SharedMemory | None:
        made: SharedMemory | None = None
        mine = taeda.tensor([os.getpid(), -1])
        with contextlib.suppress(OSError, AttributeError):
            mine[1] = SharedMemory.descriptor()
        found = [taeda.zeros(2, dtype=taeda.int64) for _ in self._ranks]
        channel.all_gather(found, mine)
        places = [(int(pid), int(fd)) for pid, fd in (row.tolist() for row in found)]
        with contextlib.suppress(OSError):
            made = SharedMemory(places, self._rank)
        agreed = taeda.tensor([int(made is not None)])
        channel.all_reduce(agreed, ReduceOp.MIN)
        if mine[1] >= 0:
            os.close(int(mine[1]))
        return made if agreed.item() else None

    def _message(self, out: bool, tensor: Tensor, peer: int | None, tag: int) -> Work:
        """Begin to send a tensor, or to receive one."""
        name = "send" if out else "receive"
        self._check_whole(name)
        if tensor.is_cuda:
            return self._nccl_message(out, tensor, peer, tag)
        flat = tensor.detach().contiguous().reshape(-1)
        record = flight_recorder._add(
            self.group_name, 0, name, [list(tensor.shape)], str(tensor.dtype)
        )
        record.start()
        begin = self._post.send if out else self._post.receive
        transfer = begin(peer, tag, view_bytes(flat))  # type: ignore[arg-type]
        return _Message(self, transfer, tensor, flat, record)

    def _nccl_message(self, out: bool, tensor: Tensor, peer: int | None, tag: int) -> Work:
        """Begin to send a tensor of a device, or to receive one, on a stream of the two."""
        if peer is None or tag != 0:
            raise ValueError(
                "messages by nccl need the other process, and have no tags: got "
                f"{'no source' if peer is None else f'tag {tag}'}"
            )
        rank = self._ranks[peer]
        name = f"send to rank {rank}" if out else f"receive from rank {rank}"
        sizes = [list(tensor.shape)]
        record = flight_recorder._add(self.group_name, 0, name, sizes, str(tensor.dtype))
        other = int(peer > self._rank)  # the number of the other one among the two

        def body(channel: Channel) -> None:
            flat = tensor.detach().contiguous().reshape(-1)
            channel.exchange([(other, flat)] if out else [], [] if out else [(other, flat)])
            if not out and flat.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(flat.reshape(tensor.shape))

        return self._nccl_group(name).begin(
            name, body, [tensor], self._timeout.total_seconds(), record,
            pair=(self._rank, peer), source=-1 if out else rank,
        )  # fmt: skip

    # ---- what goes wrong ----

    def _check_whole(self, name: str) -> None:
        if self._broken:
            raise DistBackendError(f"{name}: the group cannot be used any more: {self._broken}")

    def _given_up(self) -> str | None:
        """Why another process has given up, by the store; None if nobody has."""
        try:
            if self._store.check(["given up"]):
                return self._store.get("given up").decode()
        except RuntimeError:
            return None  # whoever kept the store has ended; the others may still be there
        return None

    def _watch(self) -> str | None:
        """Look around while this process waits, and let others know that it does."""
        if self._said != self._current:
            self._said = self._current
            try:
                self._store.set(f"waits/{self._rank}", str(self._current))
            except RuntimeError:
                return None
        return self._given_up()

    def _failure(self, name: str, sequence: int, error: Exception, seconds: float) -> Exception:
        """The error that users see; the group is given up."""
        if isinstance(error, DistBackendError):
            return error
        where = f"{name} (operation {sequence} of group {self.group_name})"
        if isinstance(error, Late):
            # Those that wait as well say so within half a second.
            self._watch()
            time.sleep(0.5)
            missing = self._missing(sequence) if sequence else []  # messages concern two alone
            missing = missing or [self._ranks[p] for p in error.peers]
            why = f"rank {_listed(missing)} did not come to {where} within {seconds:g} s"
        elif isinstance(error, Lost):
            why = str(error) if error.peer is None else (
                f"rank {self._ranks[error.peer]} {error}, noticed by rank "
                f"{self._ranks[self._rank]} in {where}"
            )  # fmt: skip
        else:
            why = f"{where} failed in rank {self._ranks[self._rank]}: {error}"
        first = self._break(why)
        message = first if first == why else f"{where}: {first}"
        made = DistBackendError(message) if isinstance(error, (Late, Lost)) else type(error)(why)
        return made

    def _missing(self, sequence: int) -> list[int]:
        """Who does not wait in an operation, or in a later one."""
        missing = []
        for place, rank in enumerate(self._ranks):
            if place == self._rank:
                continue
            try:
                there = self._store.check([f"waits/{place}"])
                if not there or int(self._store.get(f"waits/{place}")) < sequence:
                    missing.append(rank)
            except RuntimeError:
                return []
        return missing

    def _break(self, why: str) -> str:
        """Give up, and let the others know: by the store, and by the end of connections.

        Returns:
            Why the group was given up first, here or elsewhere.
        """
        first = why
        try:
            first = self._store.compare_set("given up", "", why).decode()
        except RuntimeError:
            first = why  # the store has ended with the process that kept it
        self._broken = self._broken or first
        self._transport.close()
        self._post.close()
        if self._nccl is not None:
            self._nccl.abort(first)
        return first


class _Message(Work):
    """A tensor that is being sent or received."""

    def __init__(
        self, group: ProcessGroup, transfer: Transfer, tensor: Tensor, flat: Tensor, record: Any
    ) -> None:
        super().__init__([tensor])
        self._group, self._transfer, self._flat, self._record = group, transfer, flat, record
        self._copied = False

    def _source_rank(self) -> int:
        """Whom it came from, or goes to, among all processes."""
        assert self._transfer.peer is not None
        return self._group._ranks[self._transfer.peer]

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is sent, or received: True.

        Raises:
            RuntimeError: the other process is gone, or did not send or receive in time.
        """
        group = self._group
        seconds = (timeout or group._timeout).total_seconds()
        try:
            group._post.finish([self._transfer], time.monotonic() + seconds)
        except (Late, Lost, RuntimeError) as error:
            if self._error is None:
                self._error = self._failed(error, seconds)
                self._record.end(str(self._error))
            raise self._error from error
        if not self._copied:
            self._copied = True
            self._record.end()
            tensor = self._result[0]
            if not self._transfer.out and tensor.data_ptr() != self._flat.data_ptr():
                with taeda.no_grad():
                    tensor.detach().copy_(self._flat.reshape(tensor.shape))
        return True

    def _failed(self, error: Exception, seconds: float) -> Exception:
        group, peer = self._group, self._transfer.peer
        what = "send to" if self._transfer.out else "receive from"
        whom = "anybody" if peer is None else f"rank {group._ranks[peer]}"
        if isinstance(error, Late):
            return DistBackendError(f"{what} {whom}: not over after {seconds:g} s")
        if isinstance(error, Lost):
            why = group._given_up() or str(error)
            return DistBackendError(f"{what} {whom}: {why}")
        return error

    def is_completed(self) -> bool:
        if self._transfer.done and self._transfer.error is None:
            self.wait()
        return self._transfer.done

    def is_success(self) -> bool:
        return self._transfer.done and self._transfer.error is None


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
