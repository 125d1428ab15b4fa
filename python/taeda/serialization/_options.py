"""The settings of PyTorch's format, and what a file would run."""

from __future__ import annotations

import enum
import sys
from typing import Any

__all__ = [
    "LoadEndianness",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_unsafe_globals_in_checkpoint",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
]


class LoadEndianness(enum.Enum):
    """The order of bytes of files that do not say which they have."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness: LoadEndianness | None = None
_mmap_flags: int | None = None
_crc32 = True


def get_default_load_endianness() -> LoadEndianness | None:
    """What ``set_default_load_endianness`` was given; None stands for little-endian."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Say which order of bytes ``load`` takes for files that do not say: PyTorch's before 2.1.

    Raises:
        TypeError: ``endianness`` is neither a ``LoadEndianness`` nor None.
    """
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "set_default_load_endianness: expected a LoadEndianness or None, got "
            f"{type(endianness).__name__}"
        )
    _endianness = endianness


def byte_order_of_old_files() -> str:
    """The order of bytes of a file that does not say."""
    if _endianness is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if _endianness is LoadEndianness.BIG else "little"


def get_default_mmap_options() -> int:
    """What ``set_default_mmap_options`` was given; ``mmap.MAP_PRIVATE`` before."""
    import mmap

    return mmap.MAP_PRIVATE if _mmap_flags is None else _mmap_flags


class set_default_mmap_options:
    """Say how files are mapped; also the context of a ``with`` block.

    Files are mapped privately whatever is said: changes to tensors are never written back.

    Raises:
        ValueError: ``flags`` is neither ``mmap.MAP_PRIVATE`` nor ``mmap.MAP_SHARED``.
    """

    def __init__(self, flags: int) -> None:
        import mmap

        global _mmap_flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "set_default_mmap_options: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self._before, _mmap_flags = _mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        global _mmap_flags
        _mmap_flags = self._before


def get_crc32_options() -> bool:
    """What ``set_crc32_options`` was given; True before."""
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Say whether ``save`` computes checksums. taeda always does: they cost little."""
    global _crc32
    _crc32 = compute_crc32


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The classes and functions that a file names and that loading it refuses by default.

    Args:
        f: a path or file object, as for ``load``. The file is read, and nothing in it is run.

    Returns:
        their full names, in order of appearance, without those that ``add_safe_globals`` allows.
    """
    from ._files import FileSource, is_path
    from ._limits import Budget, reading
    from ._opaque import opaque_class
    from ._reader import Placement, Storages, open_archive  # which reads these options
    from ._unpickler import SafeUnpickler

    found: dict[str, None] = {}

    def stand_in(name: str) -> type:
        found[name] = None
        return opaque_class(name)

    def read(file: Any) -> None:
        source = FileSource(file)
        with reading(Budget("the file", source.size)):
            archive = open_archive(source, "the file")
            storages = Storages(archive, Placement("meta"))
            SafeUnpickler(archive.read("data.pkl"), storages, stand_in).load()

    if is_path(f):
        with open(f, "rb") as file:
            read(file)
    else:
        start = f.tell()
        read(f)
        f.seek(start)
    return list(found)
