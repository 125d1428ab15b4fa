"""Reading the two formats that PyTorch wrote before its zip archives.

From 0.1.10 to 1.5: five pickle streams, one after the other (a magic number, a version, sizes of
C's types, the object, the storages' keys), then every storage as a count of elements and their
bytes.
Before that: a tar archive of pickle streams for storages, tensors and the object.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import Any

import taeda

from ._limits import brief, current
from ._reader import MOST, Placement, new_bytes, storage_record, swap_bytes, unpickle
from ._rebuild import LoadedStorage, rebuild_tensor
from ._unpickler import SafeUnpickler, UnpicklingError

_MAGIC = 0x1950A86A20F9469CFC6C
_COUNT = struct.Struct("<q")


def is_legacy(start: bytes) -> bool:
    """Whether a file starts with the pickled magic number, of any protocol."""
    return _MAGIC.to_bytes(10, "little") in start[:32] or str(_MAGIC).encode() in start[:32]


def _all_bytes(source: Any) -> memoryview:
    view = source.view(0, source.size) if hasattr(source, "view") else None
    return memoryview(source.read(0, source.size)) if view is None else view


def _bad(label: str, why: str) -> RuntimeError:
    return RuntimeError(f"load: {label} is damaged or cut short: {why}")


def _stream_end(data: memoryview, start: int) -> int:
    """Where the pickle stream that begins at ``start`` ends, found without running it."""
    import pickletools

    stream = io.BytesIO(data[start:])
    try:
        for opcode, _, position in pickletools.genops(stream):
            if opcode.name == "STOP":
                return start + int(position or 0) + 1
    except ValueError as error:
        raise UnpicklingError(f"load: the file's pickle stream is not valid: {error}") from None
    raise UnpicklingError("load: the file's pickle stream does not end")


def _plain(data: memoryview, at: int) -> tuple[Any, int]:
    """An object without tensors from ``data[at:]``, and where its stream ends."""

    def no_storage(record: Any) -> Any:
        raise UnpicklingError("load: a storage is named where none can be")

    reader = SafeUnpickler(data[at:], no_storage)
    return reader.load(), at + reader.position


class _Storages:
    """The storages at the end of a file: made when the stream refers to them, filled after it."""

    def __init__(self, data: memoryview, label: str, placement: Placement) -> None:
        self._data, self._label, self._placement = data, label, placement
        self._described = 0  # bytes of all storages
        self._made: dict[str, tuple[Any, LoadedStorage]] = {}  # on the CPU; the target device

    def __call__(self, record: Any) -> Any:
        """The storage, or the view of one, that a stream describes."""
        if isinstance(record, tuple) and record and record[0] == "module":
            # A class with its source, to warn if that has changed.
            return record[1]
        kind, key, location, count, view = self._parse(record)
        size = count * kind.dtype.itemsize
        if size > len(self._data):
            raise _bad(self._label, f"a storage of {count} elements does not fit into it")
        if key not in self._made:
            self._described += size + _COUNT.size
            if self._described > len(self._data):
                raise _bad(self._label, "its storages do not fit into it")
            flat, placed = self._new(size, location)
            self._made[key] = flat, LoadedStorage(placed, kind.dtype)
        flat, storage = self._made[key]
        if storage.dtype != kind.dtype or flat.numel() != size:
            raise UnpicklingError(f"load: the file describes storage {brief(key)} in two ways")
        return self._part(storage, view)

    def _new(self, size: int, location: str) -> tuple[Any, Any]:
        if self._placement.is_meta():
            flat = taeda.empty(size, dtype=taeda.uint8, device="meta")
            return flat, flat
        flat, _ = new_bytes(size)
        return flat, self._placement.place(flat, location)

    def _parse(self, record: Any) -> tuple[Any, ...]:
        length = len(record) if isinstance(record, tuple) and len(record) in (5, 6) else 6
        kind, key, location, count, *view = storage_record(record, length)
        if kind.dtype is None:
            raise UnpicklingError("load: the file holds a storage without a dtype")
        return kind, key, location, count, view[0] if view else None

    def _part(self, storage: LoadedStorage, view: Any) -> LoadedStorage:
        """A view of a storage, as PyTorch once had them: (its key, first element, elements)."""
        if view is None:
            return storage
        ok = isinstance(view, tuple) and len(view) == 3
        if not ok or not all(type(n) is int and 0 <= n <= MOST for n in view[1:]):
            raise UnpicklingError(f"load: the file describes a view of a storage as {brief(view)}")
        begin, size = view[1] * storage.dtype.itemsize, view[2] * storage.dtype.itemsize
        if begin + size > storage.flat.numel():
            raise UnpicklingError(f"load: the view {brief(view[0])} reaches beyond its storage")
        return LoadedStorage(storage.flat[begin : begin + size], storage.dtype)

    def fill(self, at: int) -> None:
        """Read the values, from the list of storages at ``at`` on."""
        keys, at = _plain(self._data, at)
        strings = isinstance(keys, list) and all(type(key) is str for key in keys)
        if not strings or sorted(keys) != sorted(self._made):
            raise _bad(self._label, "its list of storages is not that of its tensors")
        for key in keys:
            flat, storage = self._made[key]
            at = fill_storage(self._data, at, storage.dtype, flat, self._label)
            if storage.flat is not flat and not storage.flat.is_meta:
                storage.flat.copy_(flat)
        if at != len(self._data):
            raise _bad(self._label, f"it goes on for {len(self._data) - at} bytes after its end")


def fill_storage(data: memoryview, at: int, dtype: Any, flat: Any, label: str) -> int:
    """Copy a storage, written as its count of elements and their bytes; returns where it ends."""
    size = flat.numel()
    if at + _COUNT.size + size > len(data):
        raise _bad(label, "a storage is missing")
    (count,) = _COUNT.unpack_from(data, at)
    if count * dtype.itemsize != size:
        raise _bad(label, f"a storage has {count} elements, but should have {size} bytes")
    at += _COUNT.size
    if size and not flat.is_meta:
        memory = memoryview(flat.untyped_storage()).cast("B")
        memory[:] = data[at : at + size]
        if sys.byteorder == "big":
            swap_bytes(memory, dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize)
    return at + size


def read_legacy(source: Any, label: str, placement: Placement, weights_only: bool) -> Any:
    """Read a file of PyTorch 0.1.10 to 1.5, or one written since as such; ``load`` explains.

    Raises:
        RuntimeError: the file is damaged.
        pickle.UnpicklingError: a stream in it is broken, or names what is not allowed.
    """
    data = _all_bytes(source)
    at = 0
    head = []
    for _ in range(3):
        value, at = _plain(data, at)
        head.append(value)
    if head[:2] != [_MAGIC, 1001]:
        raise RuntimeError(f"load: {label} is of a format that is not known: {brief(head[:2])}")
    end = _stream_end(data, at)
    storages = _Storages(data, label, placement)
    checks = current().unfilled = []
    result = unpickle(data[at:end], storages, weights_only)
    storages.fill(end)
    current().unfilled = None
    for check in checks if not placement.is_meta() else ():
        check()
    return result


def read_tar(source: Any, label: str, placement: Placement, weights_only: bool) -> Any:
    """Read a file of PyTorch before 0.1.10; ``load`` explains the arguments.

    Raises:
        RuntimeError: the file is damaged.
        pickle.UnpicklingError: a stream in it is broken, or names what is not allowed.
    """
    parts = _tar_parts(_all_bytes(source), label)
    try:
        storages = _tar_storages(parts["storages"], label, placement)
        tensors = _tar_tensors(parts["tensors"], storages)
    except (struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _bad(label, f"{type(error).__name__}: {error}") from None

    def load(record: Any) -> Any:
        if isinstance(record, tuple) and record and not weights_only:
            return record[0]
        if not _is_key(record) or int(record) not in tensors:
            raise pickle.UnpicklingError(f"load: {label} has no tensor {brief(record)}")
        return tensors[int(record)]

    return unpickle(parts["pickle"], load, weights_only)


def _tar_parts(data: memoryview, label: str) -> dict[str, memoryview]:
    """The three files in an archive, which are plain ones: no links, nothing sparse."""
    parts: dict[str, memoryview] = {}
    at = 0
    while at + 512 <= len(data) and data[at]:
        name = bytes(data[at : at + 100]).split(b"\0")[0].decode("latin1")
        digits = bytes(data[at + 124 : at + 136]).strip(b" \0")
        if not digits.isdigit() or b"8" in digits or b"9" in digits:
            raise _bad(label, f"the size of its part {name!r} is none")
        size, at = int(digits, 8), at + 512
        if at + size > len(data):
            raise _bad(label, f"its part {name!r} claims more bytes than the file has")
        if name in ("storages", "tensors", "pickle"):
            if data[at - 512 + 156] not in b"0\0" or name in parts:
                raise _bad(label, f"its part {name!r} is stored in a way checkpoints are not")
            parts[name] = data[at : at + size]
        at += -(-size // 512) * 512
    for name in ("storages", "tensors", "pickle"):
        if name not in parts:
            raise _bad(label, f"its part {name!r} is missing")
    return parts


def _is_key(value: Any) -> bool:
    """Whether a value may name a storage or a tensor: other ones may take for ever to compare."""
    if type(value) is str:
        return len(value) <= 20 and value.isdecimal()
    return type(value) is int and -MOST <= value <= MOST


def _new_key(value: Any, found: dict[Any, Any]) -> Any:
    if not _is_key(value) or value in found:
        raise ValueError(f"{brief(value)} is no key of its own")
    return value


def _tar_storages(data: memoryview, label: str, placement: Placement) -> dict[Any, LoadedStorage]:
    total, at = _plain(data, 0)
    found: dict[Any, LoadedStorage] = {}
    for _ in range(total):
        (key, location, kind), at = _plain(data, at)
        (count,) = _COUNT.unpack_from(data, at)
        if not 0 <= count * kind.dtype.itemsize <= len(data) - at:
            raise _bad(label, f"a storage of {count} elements does not fit into it")
        flat, _ = new_bytes(count * kind.dtype.itemsize)
        at = fill_storage(data, at, kind.dtype, flat, label)
        placed = placement.place(flat, location)
        found[_new_key(key, found)] = LoadedStorage(placed, kind.dtype)
    views, at = _plain(data, at)
    for target, root, offset, size in views:
        if not _is_key(root) or not all(type(n) is int and 0 <= n <= MOST for n in (offset, size)):
            raise ValueError(f"{brief(root)} is no storage of which there is a view")
        current().take(1000, "its views of storages")
        whole, item = found[root], found[root].dtype.itemsize
        found[_new_key(target, found)] = LoadedStorage(
            whole.flat[offset * item : (offset + size) * item], whole.dtype
        )
    return found


def _tar_tensors(data: memoryview, storages: dict[Any, LoadedStorage]) -> dict[int, Any]:
    count, at = _plain(data, 0)
    found: dict[int, Any] = {}
    for _ in range(count):
        (key, storage, _kind), at = _plain(data, at)
        (ndim,) = struct.unpack_from("<i", data, at)
        if not 0 <= ndim <= 64 or not _is_key(storage):
            raise ValueError(f"a tensor of {ndim} dimensions over storage {brief(storage)}")
        numbers = struct.unpack_from(f"<{2 * ndim + 1}q", data, at + 8)
        at += 8 + 8 * len(numbers)
        size, stride, offset = numbers[:ndim], numbers[ndim : 2 * ndim], numbers[-1]
        found[int(_new_key(key, found))] = rebuild_tensor(storages[storage], offset, size, stride)
    return found
