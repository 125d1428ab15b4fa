"""Stores of keys and values, by which processes agree on things."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

from ._errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


class Store:
    """Base class of stores: a subclass says in `_opened` where the values are."""

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[dict[str, bytes]]:
        """The values, for reading and writing; nobody else changes them within the block."""
        raise NotImplementedError(f"{type(self).__name__} must define _opened()")
        yield {}

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        with self._opened() as values:
            values[key] = _bytes(value)

    def get(self, key: str) -> bytes:
        """Return a key's value, once there is one.

        Raises:
            DistStoreError: there is none until the timeout is over.
        """
        self.wait([key])
        with self._opened() as values:
            return values[key]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values.

        Raises:
            DistStoreError: the timeout is over.
        """
        until = time.monotonic() + (timeout or self._timeout).total_seconds()
        while not self.check(keys):
            if time.monotonic() > until:
                raise DistStoreError(f"{type(self).__name__}: Wait timeout for {keys}")
            time.sleep(0.005)

    def check(self, keys: list[str]) -> bool:
        """Whether all keys have values."""
        with self._opened() as values:
            return all(key in values for key in keys)

    def add(self, key: str, amount: int) -> int:
        """Add to a number, 0 at first, and return the sum."""
        with self._opened() as values:
            total = int(values.get(key, b"0")) + amount
            values[key] = str(total).encode()
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Add bytes to a value's end."""
        with self._opened() as values:
            values[key] = values.get(key, b"") + _bytes(value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a key to `desired` if its value is `expected`, or if it has none and that is empty.

        Returns:
            The value that it has then; `expected` where it has none.
        """
        expected = _bytes(expected)
        with self._opened() as values:
            if values.get(key, b"") == expected:
                values[key] = _bytes(desired)
            return values.get(key, expected)

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether there was one."""
        with self._opened() as values:
            return values.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        with self._opened() as values:
            return len(values)

    def list_keys(self) -> list[str]:
        """All keys."""
        with self._opened() as values:
            return list(values)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        """Keep several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_get` and `multi_set`: yes."""
        return True

    def _queue(self, values: dict[str, bytes], key: str) -> list[str]:
        items: list[str] = json.loads(values.get(f"/queue/{key}", b"[]"))
        return items

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        with self._opened() as values:
            items = [*self._queue(values, key), _bytes(value).hex()]
            values[f"/queue/{key}"] = json.dumps(items).encode()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take a value from the front of a queue.

        Raises:
            QueueEmptyError: there is none, and `block` is False.
            DistStoreError: there is none until the timeout is over.
        """
        until = time.monotonic() + self._timeout.total_seconds()
        while True:
            with self._opened() as values:
                items = self._queue(values, key)
                if items:
                    first = bytes.fromhex(items.pop(0))
                    values[f"/queue/{key}"] = json.dumps(items).encode()
                    return first
            if not block:
                raise QueueEmptyError(f"{type(self).__name__}: the queue {key!r} is empty")
            if time.monotonic() > until:
                raise DistStoreError(f"{type(self).__name__}: Wait timeout for queue {key!r}")
            time.sleep(0.005)

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        with self._opened() as values:
            return len(self._queue(values, key))


class HashStore(Store):
    """A store in this process's memory, for its threads.

    >>> import taeda.distributed as dist
    >>> store = dist.HashStore()
    >>> store.set("key", "value")
    >>> store.get("key"), store.add("count", 2), store.add("count", 3)
    (b'value', 2, 5)
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[dict[str, bytes]]:
        with self._changed:
            yield self._values
            self._changed.notify_all()

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        seconds = (timeout or self._timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: all(k in self._values for k in keys), seconds):
                raise DistStoreError(f"HashStore: Wait timeout for {keys}")

    def clone(self) -> HashStore:
        """Return another view of the same values."""
        other = HashStore()
        other._values, other._changed = self._values, self._changed
        return other


class FileStore(Store):
    """A store in a file, for all processes that can open it.

    Args:
        file_name: the path; the file is made where there is none.
        world_size: how many processes use it; not needed.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self.world_size = world_size
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[dict[str, bytes]]:
        with open(self.path, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = file.read()
            values = {k: bytes.fromhex(v) for k, v in json.loads(before or "{}").items()}
            yield values
            after = json.dumps({k: v.hex() for k, v in values.items()})
            if after != before:
                file.seek(0)
                file.write(after)
                file.truncate()

    def clone(self) -> FileStore:
        """Return another view of the same file."""
        return FileStore(self.path, self.world_size)


class PrefixStore(Store):
    """Another store, with something put in front of each key.

    Args:
        prefix: a key is looked up as the prefix, a slash and the key.
        store: where the values are.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix = prefix
        self.underlying_store = store
        self._timeout = store.timeout

    def _full(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._full(key), value)

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self.underlying_store.get(self._full(key))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        self.underlying_store.wait([self._full(key) for key in keys], timeout or self._timeout)

    def check(self, keys: list[str]) -> bool:
        return self.underlying_store.check([self._full(key) for key in keys])

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._full(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._full(key), value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._full(key), expected, desired)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._full(key))

    def num_keys(self) -> int:
        """How many keys the other store has."""
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        start = self._full("")
        keys = self.underlying_store.list_keys()
        return [key.removeprefix(start) for key in keys if key.startswith(start)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self.underlying_store.queue_push(self._full(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._full(key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._full(key))

    def clone(self) -> PrefixStore:
        """Return another view of the same values."""
        return PrefixStore(self.prefix, self.underlying_store)
