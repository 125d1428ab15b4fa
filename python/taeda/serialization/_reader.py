"""From an archive to objects: which storages to read, how, and onto which device."""

from __future__ import annotations

import sys
from typing import Any

import taeda

from ._files import MappedSource
from ._limits import brief, current, is_reading
from ._options import byte_order_of_old_files
from ._rebuild import LoadedStorage, TorchName
from ._unpickler import AnyUnpickler, SafeUnpickler, UnpicklingError
from ._zip import ArchiveReader

MOST = 2**63 - 1  # of a count of elements or a size


def new_bytes(size: int) -> tuple[Any, memoryview]:
    """A one-dimensional uint8 tensor on the CPU, not filled in, and its memory."""
    current().take(size + 500, "its tensors")
    flat = taeda.empty(size, dtype=taeda.uint8, device="cpu")
    return flat, memoryview(flat.untyped_storage()).cast("B")[:size]


def mapped_bytes(view: memoryview) -> Any:
    """A one-dimensional uint8 tensor over memory that it keeps alive."""
    if len(view) == 0:
        return taeda.empty(0, dtype=taeda.uint8, device="cpu")
    return taeda.frombuffer(view, dtype=taeda.uint8)


def _is_registered(device: Any) -> bool:
    try:
        taeda.empty(0, device=device)
    except (RuntimeError, AssertionError):
        return False
    return True


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
    elif device.type not in ("cpu", "meta") and not _is_registered(device):
        raise RuntimeError(f"load: don't know how to put a storage on {brief(location)}")
    return device


def device_named(location: str) -> Any:
    """The device of a saved or given name; raises if it is not usable."""
    try:
        device = taeda.device(location)
    except (RuntimeError, ValueError):
        raise RuntimeError(f"load: don't know how to put a storage on {brief(location)}") from None
    return _check_device(device, location)


class Placement:
    """The target device of storages, from any form of ``map_location``."""

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

    def is_cpu(self) -> bool:
        """Whether everything goes to the CPU."""
        return self._fixed is not None and self._fixed.type == "cpu"

    def move(self, tensor: Any) -> Any:
        """Move a tensor to the only target device."""
        return tensor.to(self._fixed)

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


def storage_record(record: Any, size: int) -> tuple[Any, ...]:
    """Validate a stream's description of a storage: a tuple of ``size`` parts."""
    types = [type(part) for part in record[:5]] if isinstance(record, tuple) else []
    wanted = [str, TorchName, str, str, int]
    if (
        types != wanted
        or len(record) != size
        or record[0] != "storage"
        or not 0 <= record[4] <= MOST
    ):
        raise UnpicklingError(f"load: the file describes a storage as {brief(record)}")
    return record[1:]


class Storages:
    """The storages of one archive, each read once, when the stream first refers to it."""

    def __init__(self, archive: ArchiveReader, placement: Placement) -> None:
        self._archive = archive
        self._placement = placement
        self._loaded: dict[str, tuple[LoadedStorage, TorchName]] = {}
        if "byteorder" in archive.entries:
            order = archive.read_short("byteorder")
        else:
            order = byte_order_of_old_files().encode()
        if order not in (b"little", b"big"):
            raise UnpicklingError(f"load: {archive.label} has an unknown byte order, {order!r}")
        self._swap = order.decode() != sys.byteorder

    def __call__(self, record: Any) -> Any:
        kind, key, location, count = storage_record(record, 5)
        if key not in self._loaded:
            self._loaded[key] = (self._load(kind, key, location, count), kind)
        storage, first_kind = self._loaded[key]
        if first_kind is not kind:
            raise UnpicklingError(f"load: the file gives storage {brief(key)} two types")
        return storage.flat.untyped_storage() if kind.dtype is None else storage

    def _load(self, kind: TorchName, key: str, location: str, count: int) -> LoadedStorage:
        name, dtype = f"data/{key}", kind.dtype
        itemsize = 1 if dtype is None else dtype.itemsize
        size = self._archive.entry(name).size
        if size // itemsize != count:
            raise UnpicklingError(
                f"load: storage {brief(key)} should have {count} elements of {itemsize} bytes, but "
                f"the file holds {size} bytes for it"
            )
        if self._placement.is_meta():
            return LoadedStorage(taeda.empty(size, dtype=taeda.uint8, device="meta"), dtype)
        flat = self._mapped(name, size, itemsize)
        if flat is None:
            flat, memory = new_bytes(size)
            self._archive.read_into(name, memory)
            if self._swap and dtype is not None:
                swap_bytes(memory, itemsize // 2 if dtype.is_complex else itemsize)
        return LoadedStorage(self._placement.place(flat, location), dtype)

    def _mapped(self, name: str, size: int, itemsize: int) -> Any:
        """The entry inside a mapped file, or None if it has to be copied."""
        source = self._archive.source
        if not isinstance(source, MappedSource) or self._swap or not self._archive.is_stored(name):
            return None
        start = self._archive.offset(name)
        return None if start % itemsize else mapped_bytes(source.view(start, size))


def swap_bytes(data: Any, itemsize: int) -> None:
    """Reverse the bytes of every item of ``itemsize`` bytes, in place."""
    import numpy

    whole = len(data) - len(data) % itemsize
    if itemsize > 1 and whole:
        numpy.frombuffer(memoryview(data)[:whole], dtype=f"u{itemsize}").byteswap(inplace=True)


def unpickle(data: Any, load_storage: Any, weights_only: bool) -> Any:
    """Run a stream; descriptions of storages are passed to ``load_storage``."""
    if weights_only:
        return SafeUnpickler(data, load_storage).load()
    import io

    try:
        return AnyUnpickler(io.BytesIO(data), load_storage).load()
    except (IndexError, OverflowError, UnicodeDecodeError, RecursionError) as error:
        text = f"{type(error).__name__}: {error}"
        raise UnpicklingError(f"load: the file's pickle stream is not valid: {text}") from error


def read_archive(source: Any, label: str, placement: Placement, weights_only: bool) -> Any:
    """Read the object that the archive in ``source`` holds; ``load`` explains the arguments."""
    archive = open_archive(source, label)
    return unpickle(archive.read("data.pkl"), Storages(archive, placement), weights_only)


def open_archive(source: Any, label: str) -> ArchiveReader:
    """The archive of a checkpoint.

    Raises:
        RuntimeError: it is damaged, or holds something else.
    """
    archive = ArchiveReader(source, label, current() if is_reading() else None)
    if "constants.pkl" in archive.entries:
        raise RuntimeError(f"load: {label} is a TorchScript program, not a checkpoint")
    version = archive.read_short("version").strip() if "version" in archive.entries else b"3"
    if not version.isdigit() or int(version) > 10:
        raise RuntimeError(f"load: {label} is of format version {version!r}, which is not known")
    return archive
