"""Saving and loading: ``save``, ``load``, and the types that files may contain.

The format is PyTorch's (``.pt``): a zip archive with a pickle stream that describes the objects and
one entry of raw bytes for each storage. Files pass both ways between the two libraries. For dicts of
tensors there are also safetensors (``.safetensors``) and NumPy's ``.npz``, and ``.npy`` for a single
tensor: ``save`` goes by the path's suffix, ``load`` by what the file holds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from taeda._C import device

from ._options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    get_unsafe_globals_in_checkpoint,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)
from ._restoring import check_module_version_greater_or_equal, default_restore_location
from ._safe import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

    File: TypeAlias = str | os.PathLike[str] | BinaryIO

DEFAULT_PROTOCOL = 2
# The type of `map_location`.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAP_LOCATION",
    "LoadEndianness",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
]


def save(
    obj: Any,
    f: File,
    *,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write ``obj`` to a file.

    Tensors inside it may share storages, which are then written once, whole, and shared again
    after loading. A path is written atomically: an interrupted save leaves the file that was there
    before as it was.

    Args:
        obj: tensors, parameters, numbers, strings and containers of them, as ``state_dict()``
            returns; also anything else that can be pickled, though such a file is then loaded only
            with ``weights_only=False`` or its classes allowed.
        f: a path, or an object with ``write``. The suffixes ``.safetensors``, ``.npz`` and ``.npy``
            select those formats, any other and a file object PyTorch's.
        pickle_protocol: the version of the pickle stream, 2 to 5. All readers know 2.

    Raises:
        RuntimeError: the directory does not exist, or one storage is used with two dtypes.
        TypeError: ``f`` is neither a path nor writable, or ``obj`` cannot be pickled.

    >>> import io
    >>> import taeda
    >>> file = io.BytesIO()
    >>> taeda.save({"weight": taeda.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> taeda.load(file)
    {'weight': tensor([1., 2.])}
    """
    from ._files import is_path, replacing

    if not _use_new_zipfile_serialization:
        warnings.warn(
            "save: the format of PyTorch before 1.6 is not written; this file has the one since, "
            "which PyTorch 1.4 and later read",
            stacklevel=2,
        )
    if not is_path(f) and not hasattr(f, "write"):
        raise TypeError(f"save: f must be a path or have a method 'write', got {type(f).__name__}")
    if not 2 <= pickle_protocol <= 5:
        raise ValueError(f"save: pickle_protocol must be from 2 to 5, got {pickle_protocol}")
    name = _stem(f)
    if name is not None and name[1] in (".safetensors", ".npz", ".npy"):
        with replacing(f) as file:  # type: ignore[arg-type]
            _write_other(obj, file, name[1])
        return

    from ._pickler import CheckpointPickler

    pickler = CheckpointPickler(pickle_protocol)
    pickler.dump(obj)
    # Everything that may fail because of obj happens before a file is opened.
    folder = _folder(name[0]) if name is not None else "archive"
    if is_path(f):
        with replacing(f) as file:  # type: ignore[arg-type]
            _write_archive(pickler, folder, file.write)
    else:
        _write_archive(pickler, folder, f.write)  # type: ignore[union-attr]


def _write_other(obj: Any, file: Any, suffix: str) -> None:
    """Write a format other than PyTorch's."""
    if suffix == ".safetensors":
        from ._safetensors import write_file

        write_file(obj, file.write, {"format": "pt"})
        return
    from ._numpy import write_npy, write_npz

    (write_npz if suffix == ".npz" else write_npy)(obj, file)


def _stem(f: Any) -> tuple[str, str] | None:
    """The file name of a path, in two parts, or None for a file object."""
    import os

    from ._files import is_path

    return os.path.splitext(os.path.basename(os.fsdecode(f))) if is_path(f) else None


def _folder(stem: str) -> str:
    """The name of the folder in an archive; a path need not be UTF-8, but names in archives are."""
    try:
        stem.encode()
    except UnicodeEncodeError:
        return "archive"
    return stem or "archive"


def _write_archive(pickler: Any, folder: str, write: Any) -> None:
    from ._pickler import storage_bytes
    from ._zip import ArchiveWriter

    archive = ArchiveWriter(write)
    archive.add(f"{folder}/data.pkl", pickler.stream.getbuffer())
    archive.add(f"{folder}/byteorder", sys.byteorder.encode())
    for i, source in enumerate(pickler.storages):
        archive.add(f"{folder}/data/{i}", storage_bytes(source))
    archive.add(f"{folder}/version", b"3\n")
    archive.finish()


def load(
    f: File,
    map_location: MAP_LOCATION = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    max_memory: int | None = None,
) -> Any:
    """Read an object that ``save``, or PyTorch's ``save``, wrote; also safetensors, npz and npy.

    What a file holds shows which format it has, whatever it is called; the formats that PyTorch
    wrote before 1.6 are read too. Checksums are compared where the format has them, and a file that
    is cut short or changed is named as such.

    Args:
        f: a path, or a seekable file object that stands where the archive starts.
        map_location: where tensors go. None: the device they were saved from. A device or its
            name: there, all of them. A dict: from saved device names to others. A function: called
            with each storage, on the CPU, and the name of the device it was saved from; it
            returns a storage on the device wanted, or None for the saved one.
        weights_only: True, which None means too: the file may name only tensors, parameters,
            containers and what ``add_safe_globals`` allows, so loading runs no code from it.
            False: **the file may run any code**; do so only with files you trust. Names under
            ``torch`` in it are then read as those under ``taeda``.
        mmap: True maps the file into memory in place of reading it: bytes are read when a tensor
            is first used, changes to tensors are not written back, and the storages' checksums are
            not compared. Needs a path. None means False. A file that another program cuts while
            it is in use ends the process: see SECURITY.md.
        max_memory: how many bytes of memory the file may ask for, compressed parts unpacked and
            objects counted, before it is refused. None means 100 times the file's size and 64 MiB.
            With ``weights_only=False``, what the file's code does is not counted.

    Raises:
        FileNotFoundError: there is no such file.
        EOFError: the file is empty.
        RuntimeError: the file is damaged or not of this format, asks for more memory or steps than
            it may, or a device is not available.
        pickle.UnpicklingError: the description of the objects is broken, or names something that
            is not allowed.
    """
    import os

    from ._files import FileSource, MappedSource, is_path
    from ._formats import read_any

    if not is_path(f):
        if mmap:
            raise ValueError("load: mmap=True needs a path, got a file object")
        for method in ("read", "seek", "tell"):
            if not hasattr(f, method):
                raise AttributeError(
                    "load: f must be a path or a seekable file object; a "
                    f"{type(f).__name__} has no {method!r}"
                )
        safe = weights_only is not False
        return read_any(FileSource(f), "the file object", map_location, safe, max_memory=max_memory)
    with open(f, "rb") as file:  # type: ignore[arg-type]
        source = MappedSource(file) if mmap else FileSource(file)
        path = os.fsdecode(f)  # type: ignore[arg-type]
        suffix = os.path.splitext(path)[1]
        safe = weights_only is not False
        return read_any(source, repr(path), map_location, safe, suffix, max_memory)
