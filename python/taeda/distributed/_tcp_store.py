"""`TCPStore`: values that one process keeps for all, which reach it over the network."""

from __future__ import annotations

import atexit
import os
import selectors
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta

from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from ._stores import HashStore, Store, _bytes

__all__ = ["TCPStore"]

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_stores: weakref.WeakSet[TCPStore] = weakref.WeakSet()


def _kept(made: socket.socket) -> socket.socket:
    """A socket that processes forked from this one do not hold open."""
    _sockets.add(made)
    return made


def _close_in_child() -> None:
    # A worker of a DataLoader that held a copy would hide that its parent has died.
    for each in list(_sockets):
        each.close()


os.register_at_fork(after_in_child=_close_in_child)


# ---- messages: a count, then as many strings of bytes, each after its length ---------------------


def _packed(parts: Sequence[bytes]) -> bytes:
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return struct.pack("<II", len(body), len(parts)) + body


def _unpacked(body: bytes, count: int) -> list[bytes]:
    parts, at = [], 0
    for _ in range(count):
        (size,) = struct.unpack_from("<I", body, at)
        parts.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return parts


def _number(value: bytes) -> int:
    return int(value)


class _Client:
    """A connection, as the server sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.received = bytearray()
        self.waits_for: list[str] | None = None  # keys; for a queue, where its items are
        self.queue = ""
        self.until = 0.0

    def answer(self, status: bytes, *values: bytes) -> None:
        self.socket.setblocking(True)
        self.socket.sendall(_packed([status, *values]))
        self.socket.setblocking(False)


class _Server(threading.Thread):
    """Keeps the values and answers all clients, in one thread."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(name="taeda store", daemon=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = _kept(socket.socket(family, socket.SOCK_STREAM))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("", port))
            self._listener.listen(4096)
        except OSError as error:
            self._listener.close()
            raise DistNetworkError(
                f"TCPStore: cannot listen on port {port}: {error.strerror}"
            ) from error
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._values = HashStore()
        self._clients: set[_Client] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._ended = False
        self._values.set_timeout(timedelta(0))  # a client waits; the server never does

    def run(self) -> None:
        while not self._ended or self._clients:  # others may still need what is kept
            waiting = [c.until for c in self._clients if c.waits_for is not None]
            pause = min([0.5, *(max(0.0, until - time.monotonic()) for until in waiting)])
            for key, _ in self._selector.select(pause):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._answer_waiting()
        self._selector.close()
        self._listener.close()

    def stop(self) -> None:
        """End when nobody is connected any more."""
        self._ended = True

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        client = _Client(_kept(connection))
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _forget(self, client: _Client) -> None:
        self._selector.unregister(client.socket)
        self._clients.discard(client)
        client.socket.close()

    def _read(self, client: _Client) -> None:
        try:
            more = client.socket.recv(1 << 16)
        except OSError:
            more = b""
        if not more:
            self._forget(client)
            return
        client.received += more
        while len(client.received) >= 8:
            size, count = struct.unpack_from("<II", client.received)
            if len(client.received) < 8 + size:
                break
            body = bytes(client.received[8 : 8 + size])
            del client.received[: 8 + size]
            try:
                self._do(client, *_unpacked(body, count))
            except OSError:
                self._forget(client)
                return
            except Exception as error:
                client.answer(b"error", str(error).encode())

    def _do(self, client: _Client, name: bytes, *values: bytes) -> None:
        kept = self._values
        if name in (b"wait", b"queue_pop"):
            client.until = time.monotonic() + float(values[0])
            client.queue = values[1].decode() if name == b"queue_pop" else ""
            keys = [value.decode() for value in values[1:]]
            client.waits_for = [f"/queue/{client.queue}"] if client.queue else keys
            self._answer_waiting()
            return
        key, rest = (values[0].decode(), values[1:]) if values else ("", ())
        answers: list[bytes]
        if name == b"get":
            answers = [kept.get(key)]
        elif name == b"check":
            answers = [b"1" if kept.check([value.decode() for value in values]) else b""]
        elif name == b"add":
            answers = [str(kept.add(key, _number(rest[0]))).encode()]
        elif name == b"compare_set":
            answers = [kept.compare_set(key, rest[0], rest[1])]
        elif name == b"delete_key":
            answers = [b"1" if kept.delete_key(key) else b""]
        elif name == b"num_keys":
            answers = [str(kept.num_keys()).encode()]
        elif name == b"list_keys":
            answers = [found.encode() for found in kept.list_keys()]
        elif name == b"queue_len":
            answers = [str(kept.queue_len(key)).encode()]
        else:
            {b"set": kept.set, b"append": kept.append, b"queue_push": kept.queue_push}[name](
                key, rest[0]
            )
            answers = []
        client.answer(b"ok", *answers)

    def _answer_waiting(self) -> None:
        now = time.monotonic()
        for client in [c for c in self._clients if c.waits_for is not None]:
            keys = client.waits_for or []
            there = self._values.queue_len(client.queue) > 0 if client.queue else (
                self._values.check(keys)
            )  # fmt: skip
            if not there and now < client.until:
                continue
            client.waits_for = None
            try:
                if not there:
                    client.answer(b"timeout")
                elif client.queue:
                    client.answer(b"ok", self._values.queue_pop(client.queue))
                else:
                    client.answer(b"ok")
            except OSError:
                self._forget(client)


class TCPStore(Store):
    """A store in the memory of one process, the master, for all that can reach it.

    Whoever can reach the port can read and write: it belongs on a network that is trusted, as the
    training's other connections do.

    Args:
        host_name: the machine of the master.
        port: its port; 0 for the master lets the system choose, and `port` says what it is.
        world_size: how many processes there will be; for the master to wait for.
        is_master: whether this process keeps the values.
        timeout: how long `get` and `wait` wait, and connecting tries.
        wait_for_workers: whether all wait here until ``world_size`` processes have come.
        multi_tenant: whether a second master in this process shares the first one's values.
        use_libuv: True; there is one implementation.

    Raises:
        DistNetworkError: the master cannot be reached, or the port cannot be had.

    >>> import taeda.distributed as dist
    >>> store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    >>> other = dist.TCPStore("127.0.0.1", store.port)
    >>> other.set("key", "value")
    >>> store.get("key"), other.add("count", 2)
    (b'value', 2)
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self.host, self.port = host_name, port
        self._server: _Server | None = None
        self._local = threading.local()
        self._opened_sockets: list[socket.socket] = []
        _stores.add(self)
        if is_master:
            shared = _servers.get(port) if multi_tenant else None
            self._server = shared or _Server(host_name, port)
            self.port = self._server.port
            if shared is None:
                self._server.start()
                _servers[self.port] = self._server
        self._connection()
        if world_size is not None and world_size > 0 and wait_for_workers:
            if self.add("/workers", 1) == world_size:
                self.set("/workers/all", "1")
            self.wait(["/workers/all"])

    def __del__(self) -> None:
        self._close()
        # Whoever made the server keeps it; others of this process may share it.
        server: _Server | None = self.__dict__.get("_server")
        if server is not None and _servers.get(self.port) is server:
            del _servers[self.port]
            server.stop()
            _ending.append(server)

    def _close(self) -> None:
        for each in self.__dict__.get("_opened_sockets", ()):
            each.close()

    def _connection(self) -> socket.socket:
        """The thread's own connection, so that one that waits holds up no other."""
        made: socket.socket | None = getattr(self._local, "socket", None)
        if made is not None and made.fileno() >= 0:
            return made
        until = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                made = socket.create_connection((self.host, self.port), timeout=5)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise DistNetworkError(
                        f"TCPStore: the client socket has timed out after {self._timeout} while "
                        f"trying to connect to ({self.host}, {self.port}): {error}"
                    ) from error
                time.sleep(0.05)
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._local.socket = _kept(made)
        self._opened_sockets.append(made)
        return made

    def _ask(self, name: str, *values: str | bytes) -> list[bytes]:
        connection = self._connection()
        try:
            connection.sendall(_packed([name.encode(), *map(_bytes, values)]))
            size, count = struct.unpack("<II", self._exactly(connection, 8))
            status, *answers = _unpacked(self._exactly(connection, size), count)
        except OSError as error:
            connection.close()
            raise DistNetworkError(
                f"TCPStore: lost the process that keeps the store at {self.host}:{self.port}: "
                f"{error}"
            ) from error
        if status == b"timeout":
            raise DistStoreError(f"TCPStore: Wait timeout for {[_text(v) for v in values[1:]]}")
        if status == b"error":
            raise DistStoreError(f"TCPStore: {name}: {answers[0].decode()}")
        return answers

    @staticmethod
    def _exactly(connection: socket.socket, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = connection.recv(size - len(received))
            if not more:
                raise ConnectionResetError("the connection was closed")
            received += more
        return bytes(received)

    def _local_address(self) -> str:
        """The address by which this machine reaches the master."""
        return str(self._connection().getsockname()[0])

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key, value)

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._ask("get", key)[0]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        self._ask("wait", str((timeout or self._timeout).total_seconds()), *keys)

    def check(self, keys: list[str]) -> bool:
        return bool(self._ask("check", *keys)[0])

    def add(self, key: str, amount: int) -> int:
        return _number(self._ask("add", key, str(amount))[0])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key, value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._ask("compare_set", key, expected, desired)[0]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete_key", key)[0])

    def num_keys(self) -> int:
        return _number(self._ask("num_keys")[0])

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._ask("list_keys")]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._ask("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        if not block and self.queue_len(key) == 0:
            raise QueueEmptyError(f"TCPStore: the queue {key!r} is empty")
        return self._ask("queue_pop", str(self._timeout.total_seconds()), key)[0]

    def queue_len(self, key: str) -> int:
        return _number(self._ask("queue_len", key)[0])

    def clone(self) -> TCPStore:
        """Return another view of the same values."""
        return TCPStore(self.host, self.port, timeout=self._timeout)


_servers: dict[int, _Server] = {}
_ending: list[_Server] = []


@atexit.register
def _linger() -> None:
    """At the end of the program, wait a little for processes that are about to end as well."""
    until = time.monotonic() + 3
    for store in list(_stores):
        store._close()
    for server in [*_servers.values(), *_ending]:
        server.stop()
        server.join(max(0.0, until - time.monotonic()))


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
