"""From an archive to objects: which storages to read, how, and onto which device."""

from __future__ import annotations

import sys
from typing import Any

import taeda

from ._files import MappedSource
from ._rebuild import LoadedStorage, TorchName
from ._unpickler import AnyUnpickler, SafeUnpickler, UnpicklingError
from ._zip import ArchiveReader


def bytes_tensor(buffer: Any) -> Any:
    """A one-dimensional uint8 tensor over ``buffer``, which it keeps alive."""
    if len(buffer) == 0:
        return taeda.empty(0, dtype=taeda.uint8)
    return taeda.frombuffer(buffer, dtype=taeda.uint8)


def _check_device(device: Any, location: str) -> Any:
    if device.type == "cuda":
        cuda = getattr(taeda, "cuda", None)
        if cuda is None or not cuda.is_available():
            raise RuntimeError(
                f"load: a storage is to be put on {location!r}, but CUDA is not available; "
                "map_location='cpu' puts it on the CPU"
            )
        if device.index is not None and device.index >= cuda.device_count():
            raise RuntimeError(
                f"load: a storage is to be put on {location!r}, but there are only "
                f"{cuda.device_count()} CUDA devices; map_location can name another"
            )
    elif device.type not in ("cpu", "meta"):
        raise RuntimeError(f"load: don't know how to put a storage on {location!r}")
    return device


def device_named(location: str) -> Any:
    """The device that a saved or given name stands for, once it is known to be usable."""
    try:
        device = taeda.device(location)
    except (RuntimeError, ValueError):
        raise RuntimeError(f"load: don't know how to put a storage on {location!r}") from None
    return _check_device(device, location)


class Placement:
    """Where storages go: what ``map_location`` says, whichever of its forms it has."""

    def __init__(self, map_location: Any) -> None:
        fixed = isinstance(map_location, (str, taeda.device))
        ruled = isinstance(map_location, dict) or callable(map_location)
        if not (map_location is None or fixed or ruled):
            raise TypeError(
                "load: map_location must be a device, its name, a dict, a function or None, got "
                f"{type(map_location).__name__}"
            )
        self._rule = map_location
        self._fixed = device_named(str(map_location)) if fixed else None

    def is_meta(self) -> bool:
        """Whether nothing needs to be read at all."""
        return self._fixed is not None and self._fixed.type == "meta"

    def place(self, flat: Any, location: str) -> Any:
        """Move a storage's bytes from the CPU to where they belong."""
        if self._fixed is not None:
            device = self._fixed
        elif isinstance(self._rule, dict):
            device = device_named(str(self._rule.get(location, location)))
        elif self._rule is None:
            device = device_named(location)
        else:
            answer = self._rule(flat.untyped_storage(), location)
            if answer is None:
                device = device_named(location)
            elif not hasattr(answer, "device"):
                raise TypeError(
                    f"load: map_location must return a storage or None, got {type(answer).__name__}"
                )
            else:
                device = answer.device
        return flat if device.type == "cpu" else flat.to(device)


class _Storages:
    """The storages of one archive, each read once, when the stream first refers to it."""

    def __init__(self, archive: ArchiveReader, placement: Placement) -> None:
        self._archive = archive
        self._placement = placement
        self._loaded: dict[str, tuple[LoadedStorage, TorchName]] = {}
        order = bytes(archive.read("byteorder")) if "byteorder" in archive.entries else b"little"
        if order not in (b"little", b"big"):
            raise UnpicklingError(f"load: {archive.label} has an unknown byte order, {order!r}")
        self._swap = order.decode() != sys.byteorder

    def __call__(self, record: Any) -> Any:
        types = [type(part) for part in record] if isinstance(record, tuple) else []
        if types != [str, TorchName, str, str, int] or record[0] != "storage" or record[4] < 0:
            raise UnpicklingError(f"load: the file describes a storage as {record!r}")
        _, kind, key, location, count = record
        if key not in self._loaded:
            self._loaded[key] = (self._load(kind, key, location, count), kind)
        storage, first_kind = self._loaded[key]
        if first_kind is not kind:
            raise UnpicklingError(f"load: the file gives storage {key!r} two types")
        return storage.flat.untyped_storage() if kind.dtype is None else storage

    def _load(self, kind: TorchName, key: str, location: str, count: int) -> LoadedStorage:
        name, dtype = f"data/{key}", kind.dtype
        if self._placement.is_meta() and dtype is not None:
            return LoadedStorage(None, dtype)
        itemsize = 1 if dtype is None else dtype.itemsize
        entry = self._archive.entries.get(name)
        if entry is not None and entry.size // itemsize != count:
            raise UnpicklingError(
                f"load: storage {key!r} should have {count} elements of {itemsize} bytes, but the "
                f"file holds {entry.size} bytes for it"
            )
        source = self._archive.source
        if isinstance(source, MappedSource) and self._archive.is_stored(name) and not self._swap:
            data: Any = source.view(self._archive.offset(name), entry.size if entry else 0)
        else:
            data = self._archive.read(name)
        if self._swap and dtype is not None:
            swap_bytes(data, itemsize // 2 if dtype.is_complex else itemsize)
        flat = self._placement.place(bytes_tensor(data), location)
        if dtype is not None:
            # Bytes beyond the last whole element belong to the storage, but to no element.
            flat = flat[: count * itemsize].view(dtype)
        return LoadedStorage(flat, dtype)


def swap_bytes(data: Any, itemsize: int) -> None:
    """Turn every item of ``itemsize`` bytes around, in place."""
    import numpy

    whole = len(data) - len(data) % itemsize
    if itemsize > 1 and whole:
        numpy.frombuffer(memoryview(data)[:whole], dtype=f"u{itemsize}").byteswap(inplace=True)


def read_checkpoint(source: Any, label: str, map_location: Any, weights_only: bool) -> Any:
    """Read the object that the archive in ``source`` holds; ``load`` explains the arguments."""
    placement = Placement(map_location)
    if source.size == 0:
        raise EOFError(f"load: {label} is empty, or the file object stands at its end")
    start = source.read(0, 4)
    if start != b"PK\x03\x04":
        raise RuntimeError(
            f"load: {label} is not a checkpoint: it starts with {start!r}, not as a zip archive. "
            "(PyTorch before 1.6 wrote another format, which is not read; files of it can be "
            "loaded and saved again with a newer PyTorch.)"
        )
    archive = ArchiveReader(source, label)
    if "constants.pkl" in archive.entries:
        raise RuntimeError(f"load: {label} is a TorchScript program, not a checkpoint")
    stream = archive.read("data.pkl")
    version = bytes(archive.read("version")).strip() if "version" in archive.entries else b"3"
    if not version.isdigit() or int(version) > 10:
        raise RuntimeError(f"load: {label} is of format version {version!r}, which is not known")
    storages = _Storages(archive, placement)
    if weights_only:
        return SafeUnpickler(stream, storages).load()
    import io

    return AnyUnpickler(io.BytesIO(stream), storages).load()
