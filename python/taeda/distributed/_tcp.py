"""The transport over sockets: Unix sockets within a machine, TCP between machines.

A process connects to another when it first sends to it, so that each connection goes one way, and a
process has as many as it needs. Each message follows a header of its tag and its size. A process
that has died is seen as the end of its connections.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import select
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from ._stores import Store
from ._tcp_store import _kept
from ._transport import Late, Lost, Transfer, Transport

__all__ = ["SocketTransport"]

_HEADER = struct.Struct("<qq")  # tag, size
_HELLO = struct.Struct("<32sq")  # the group's secret, rank
_READ = select.POLLIN
_WRITE = select.POLLOUT
_BUFFER = 1 << 20  # bytes that may be on their way within a machine
_LOOK = 0.5  # seconds between looks at what the store says, and at the clock


def _machine() -> str:
    """What processes have in common that reach each other's Unix sockets and descriptors."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return " ".join([boot, *(os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid"))])
    except OSError:
        return ""


class _Out:
    """A connection to another process, and what is to be sent over it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.waiting: deque[tuple[Transfer, list[memoryview]]] = deque()
        self.polled = _READ


class _Message:
    """A message that comes in: straight to where it is wanted, or to a place of its own."""

    def __init__(self, size: int, transfer: Transfer | None) -> None:
        self.transfer = transfer
        self.place = memoryview(bytearray(size)) if transfer is None else transfer.data
        self.read = 0
        self.complete = False


class _In:
    """A connection from another process, and what is being read from it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.peer: int | None = None
        self.header = memoryview(bytearray(_HELLO.size))
        self.read = 0
        self.key: tuple[int, int] = (-1, 0)
        self.message: _Message | None = None


class SocketTransport(Transport):
    """Messages over sockets.

    Args:
        store: where processes say how to reach them.
        rank: the number of this process in the group.
        size: how many there are.
        address: of this machine's network, for those on other machines.
        background: whether a thread moves what has been begun while nobody waits for it.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        address: str,
        background: bool = False,
    ) -> None:
        super().__init__()
        self.rank, self.size = rank, size
        self._store = store
        self._outs: dict[int, _Out] = {}
        self._ins: dict[int, _In] = {}
        self._by_fd: dict[int, _Out | _In | socket.socket] = {}
        self._poll = select.poll()
        self._begun: deque[Transfer] = deque()
        self._wanted: dict[tuple[int, int], deque[Transfer]] = defaultdict(deque)
        self._anybody: dict[int, deque[Transfer]] = defaultdict(deque)
        self._early: dict[tuple[int, int], deque[_Message]] = defaultdict(deque)
        self._gone: dict[int, str] = {}
        self._silent: set[int] = set()  # those that can send nothing more
        self._closed = False
        self._looked = 0.0
        self._thread: threading.Thread | None = None
        self._background = background
        self._listen(address)

    # ---- connections ----

    def _listen(self, address: str) -> None:
        if self.rank == 0:
            self._store.set("secret", secrets.token_hex(16))
        self._secret = self._store.get("secret")
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.bind("")  # the system chooses a name that no file has
        remote = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        remote.bind((address, 0))
        self._listeners = [_kept(local), _kept(remote)]
        for each in self._listeners:
            each.listen(4096)
            each.setblocking(False)
            self._by_fd[each.fileno()] = each
            self._poll.register(each, _READ)
        self._waker, self._wakes = map(_kept, socket.socketpair())
        for each in (self._waker, self._wakes):
            each.setblocking(False)
        self._by_fd[self._wakes.fileno()] = self._wakes
        self._poll.register(self._wakes, _READ)
        name = local.getsockname()
        where = [_machine(), name.hex(), *remote.getsockname()[:2]]
        self._store.set(f"at/{self.rank}", json.dumps(where))

    def one_machine(self) -> bool:
        """Whether all processes are on this machine."""
        mine = _machine()
        if not mine or self.size > 64:
            return False
        found = [json.loads(self._store.get(f"at/{peer}"))[0] for peer in range(self.size)]
        return all(machine == mine for machine in found)

    def _connected(self, peer: int) -> _Out:
        if peer in self._outs:
            return self._outs[peer]
        machine, name, host, port = json.loads(self._store.get(f"at/{peer}"))
        if machine and machine == _machine():
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            # A larger buffer than by default: where processes share cores, they change less often.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            made.connect(bytes.fromhex(name))
        else:
            made = socket.create_connection((host, port), timeout=30)
            _keep_alive(made)
        made.settimeout(30)
        made.sendall(_HELLO.pack(self._secret, self.rank))
        made.setblocking(False)
        out = self._outs[peer] = _Out(_kept(made))
        self._by_fd[made.fileno()] = out
        self._poll.register(made, _READ)  # nothing is read from it, but its end is seen
        return out

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            made, _ = listener.accept()
            if made.family != socket.AF_UNIX:
                _keep_alive(made)
            made.setblocking(False)
            self._by_fd[made.fileno()] = _In(_kept(made))
            self._poll.register(made, _READ)

    def _drop(self, connection: _Out | _In, why: str) -> None:
        """A connection has ended: so has what waits for the process at its other end."""
        fd = connection.socket.fileno()
        self._poll.unregister(fd)
        del self._by_fd[fd]
        connection.socket.close()
        peer = connection.peer if isinstance(connection, _In) else next(
            p for p, out in self._outs.items() if out is connection
        )  # fmt: skip
        if peer is None:
            return
        self._gone.setdefault(peer, why)
        error = Lost(peer, self._gone[peer])
        if isinstance(connection, _Out):
            for transfer, _ in connection.waiting:
                transfer.end(error)
            connection.waiting.clear()
            return
        # An end of the connection that brings messages alone says that there are no more.
        self._silent.add(peer)
        if connection.message is not None and connection.message.transfer is not None:
            connection.message.transfer.end(error)
        for key in [key for key in self._wanted if key[0] == peer]:
            for transfer in self._wanted.pop(key):
                transfer.end(error)

    # ---- transfers ----

    def send(self, peer: int, tag: int, data: memoryview) -> Transfer:
        return self._begin(Transfer(peer, tag, data, out=True))

    def receive(self, peer: int | None, tag: int, data: memoryview) -> Transfer:
        return self._begin(Transfer(peer, tag, data, out=False))

    def _begin(self, transfer: Transfer) -> Transfer:
        if self._closed:
            raise Lost(None, "the group's connections have been closed")
        if not self._background:
            self._started(transfer)
            return transfer
        self._begun.append(transfer)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="taeda sockets", daemon=True)
            self._thread.start()
        with contextlib.suppress(BlockingIOError):
            self._waker.send(b"\0")
        return transfer

    def finish(self, transfers: Sequence[Transfer], until: float) -> None:
        for transfer in transfers:
            while not transfer.done:
                if self._background:
                    transfer.ended(_LOOK)
                else:
                    self._turn(max(0.0, min(until - time.monotonic(), _LOOK)))
                if not transfer.done:
                    self._look(transfers, until)
            if transfer.error is not None:
                raise transfer.error

    def _look(self, transfers: Sequence[Transfer], until: float) -> None:
        now = time.monotonic()
        if now > until:
            raise Late(sorted({t.peer for t in transfers if not t.done and t.peer is not None}))
        for transfer in transfers:
            # It has gone before it connected to this process.
            if transfer.peer in self._gone and transfer.peer not in self._ins:
                raise Lost(transfer.peer, self._gone[transfer.peer])
        if now > self._looked + _LOOK:
            self._looked = now
            why = self.watch()
            if why is not None:
                raise Lost(None, why)

    def _work(self) -> None:
        while not self._closed:
            while self._begun:
                self._started(self._begun.popleft())
            self._turn(_LOOK)

    def _started(self, transfer: Transfer) -> None:
        try:
            if transfer.out:
                assert transfer.peer is not None
                out = self._connected(transfer.peer)
                if transfer.peer in self._gone:
                    raise Lost(transfer.peer, self._gone[transfer.peer])
                header = memoryview(_HEADER.pack(transfer.tag, transfer.data.nbytes))
                out.waiting.append((transfer, [header, transfer.data]))
                if len(out.waiting) == 1:
                    self._write(out)
            elif transfer.peer is None:
                self._anybody[transfer.tag].append(transfer)
                self._take_early(transfer)
            else:
                self._wanted[transfer.peer, transfer.tag].append(transfer)
                self._take_early(transfer)
                if not transfer.done and transfer.peer in self._silent:
                    self._unwant(transfer)
                    raise Lost(transfer.peer, self._gone[transfer.peer])
        except (OSError, Lost, RuntimeError) as error:
            if isinstance(error, Lost):
                transfer.end(error)
            else:
                transfer.end(Lost(transfer.peer, f"cannot be reached ({error})"))

    def _take_early(self, transfer: Transfer) -> None:
        """Give a transfer the message that came before it was wanted, if one has."""
        for key, messages in self._early.items():
            peer, tag = key
            message = messages[0]
            if tag != transfer.tag or transfer.peer not in (None, peer) or message.transfer:
                continue
            self._unwant(transfer)
            if message.complete:
                self._forget_early(key)
                transfer.peer = peer
                self._deliver(message, transfer)
            else:  # the rest of it is still to come
                message.transfer = transfer
            return

    def _forget_early(self, key: tuple[int, int]) -> None:
        messages = self._early[key]
        messages.popleft()
        if not messages:
            del self._early[key]

    def _unwant(self, transfer: Transfer) -> None:
        if transfer.peer is None:
            self._anybody[transfer.tag].remove(transfer)
            return
        key = transfer.peer, transfer.tag
        self._wanted[key].remove(transfer)
        if not self._wanted[key]:
            del self._wanted[key]

    def _deliver(self, message: _Message, transfer: Transfer) -> None:
        if message.place is not transfer.data:
            if len(message.place) != transfer.data.nbytes:
                transfer.end(self._other_size(transfer, len(message.place)))
                return
            transfer.data[:] = message.place
        transfer.end()

    def _other_size(self, transfer: Transfer, size: int) -> RuntimeError:
        return RuntimeError(
            f"process {transfer.peer} of the group sent {size} bytes where "
            f"{transfer.data.nbytes} are expected: tensors of processes must have the same sizes"
        )

    # ---- moving bytes ----

    def _turn(self, seconds: float) -> None:
        """Wait for something to happen, and do what can be done."""
        for fd, event in self._poll.poll(seconds * 1000):
            found = self._by_fd.get(fd)
            if found is self._wakes:
                with contextlib.suppress(BlockingIOError):
                    self._wakes.recv(4096)
            elif isinstance(found, socket.socket):
                self._accept(found)
            elif isinstance(found, _In):
                self._read(found)
            elif isinstance(found, _Out):
                if event & _WRITE:
                    self._write(found)
                elif event & (_READ | select.POLLHUP | select.POLLERR):
                    self._drop(found, "has ended or closed its connection")

    def _write(self, out: _Out) -> None:
        try:
            while out.waiting:
                transfer, parts = out.waiting[0]
                sent = out.socket.sendmsg(parts)
                while parts and sent >= len(parts[0]):
                    sent -= len(parts.pop(0))
                if parts:
                    parts[0] = parts[0][sent:]
                else:
                    out.waiting.popleft()
                    transfer.end()
        except BlockingIOError:
            pass  # the other side must read first
        except OSError as error:
            self._drop(out, f"has ended or closed its connection ({error.strerror})")
            return
        wanted = _READ | (_WRITE if out.waiting else 0)
        if wanted != out.polled:
            out.polled = wanted
            self._poll.modify(out.socket, wanted)

    def _read(self, source: _In) -> None:
        try:
            while True:
                if source.message is None:
                    wanted = source.header[source.read :]
                else:
                    wanted = source.message.place[source.message.read :]
                if len(wanted):
                    count = source.socket.recv_into(wanted)
                    if count == 0:
                        self._drop(source, "has ended or closed its connection")
                        return
                    if count < len(wanted):
                        self._advance(source, count)
                        continue
                    self._advance(source, count)
                if not self._completed(source):
                    return
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(source, f"has ended or closed its connection ({error.strerror})")

    def _advance(self, source: _In, count: int) -> None:
        if source.message is None:
            source.read += count
        else:
            source.message.read += count

    def _completed(self, source: _In) -> bool:
        """A greeting, a header or a message is here. False where the connection is refused."""
        if source.peer is None:
            secret, peer = _HELLO.unpack(source.header)
            if not hmac.compare_digest(secret, self._secret):
                self._drop(source, "is no process of the group")
                return False
            source.peer = peer
            self._ins[peer] = source
            source.header = memoryview(bytearray(_HEADER.size))
            source.read = 0
        elif source.message is None:
            tag, size = _HEADER.unpack(source.header)
            source.read = 0
            source.key = source.peer, tag
            source.message = self._place_for(source.key, size)
        else:
            message, source.message = source.message, None
            message.complete = True
            if message.transfer is not None:
                if message.transfer.data is not message.place:
                    self._forget_early(source.key)
                message.transfer.peer = source.peer
                self._deliver(message, message.transfer)
        return True

    def _place_for(self, key: tuple[int, int], size: int) -> _Message:
        peer, tag = key
        for waiting in (self._wanted.get(key), self._anybody.get(tag)):
            if waiting:
                transfer = waiting[0]
                self._unwant(transfer)
                transfer.peer = peer
                if transfer.data.nbytes == size:
                    return _Message(size, transfer)
                transfer.end(self._other_size(transfer, size))
                return _Message(size, None)  # read, and forgotten
        message = _Message(size, None)
        self._early[key].append(message)
        return message

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._thread is not None and self._thread is not threading.current_thread():
            with contextlib.suppress(OSError):
                self._waker.send(b"\0")
            self._thread.join(5)
        for found in self._by_fd.values():
            (found if isinstance(found, socket.socket) else found.socket).close()
        self._waker.close()
        error = Lost(None, "the group's connections have been closed")
        unfinished = [t for out in self._outs.values() for t, _ in out.waiting]
        unfinished += [t for waiting in self._wanted.values() for t in waiting]
        unfinished += [t for waiting in self._anybody.values() for t in waiting]
        for transfer in [*unfinished, *self._begun]:
            transfer.end(error)
        self._by_fd.clear()


def _keep_alive(made: socket.socket) -> None:
    """Notice a machine that has gone without a word, within some seconds."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 10_000)


def address_of(store: Store) -> str:
    """The address by which other processes reach this one: as this one reaches the store."""
    inner: Store = store
    while hasattr(inner, "underlying_store"):
        inner = inner.underlying_store
    if hasattr(inner, "_local_address"):
        return str(inner._local_address())
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
