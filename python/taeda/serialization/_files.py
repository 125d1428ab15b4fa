"""Files as ``save`` and ``load`` use them: replaced as a whole, read in ranges."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Made = TypeVar("_Made")


def is_path(f: object) -> bool:
    """Whether ``f`` names a file rather than being one."""
    return isinstance(f, (str, os.PathLike))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a binary file that replaces ``path`` if the block ends without an exception.

    What is written goes to a new file in the same directory, which has no name while it is written
    where the system can do that, is flushed to the disk and is then renamed over ``path`` in one
    step: whenever the process or the machine stops, ``path`` is either the old file or the new one,
    each whole. If the block raises, the new file is gone and ``path`` is untouched. Should a killed
    process leave a file behind, the next save to the same path removes it. Symbolic links are
    followed; pipes and devices are written directly.
    """
    target = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"save: the parent directory {folder!r} does not exist")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    temporary = None
    unnamed = _open_unnamed(folder)
    if unnamed is not None:
        descriptor = unnamed
    else:
        temporary, descriptor = _claim(folder, name, _open_named)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if temporary is None:
                temporary = _claim(folder, name, lambda path: _link(file.fileno(), path))[0]
            os.replace(temporary, target)
    except BaseException:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        raise
    _sync_folder(folder)


def _lock(descriptor: int) -> bool:
    """Mark an open file as in use, until it is closed. False where somebody else has."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # also on a file system without locks
        return False
    return True


def _open_unnamed(folder: str) -> int | None:
    """A new unnamed file on the folder's disk, which vanishes if the process dies.

    None where the system or the file system has no such files.
    """
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:
        return None
    _lock(descriptor)
    return descriptor


def _link(descriptor: int, path: str) -> None:
    """Give an open file without a name the name ``path``, which must be free."""
    # With a folder's descriptor, needed or not, Python follows the link in /proc/self/fd.
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _open_named(path: str) -> int:
    """A new file of this name, which must be free; FileExistsError if somebody took it since."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    _lock(descriptor)
    if not _is_file_at(path, descriptor):
        os.close(descriptor)
        raise FileExistsError(path)
    return descriptor


def _claim(folder: str, name: str, make: Callable[[str], _Made]) -> tuple[str, _Made]:
    """The first free temporary name for ``name``, and the result of ``make`` for it.

    A file that a save left there when it was killed is removed.
    """
    count = 0
    while True:
        path = os.path.join(folder, f".{name[:200]}.{count}.saving")
        try:
            return path, make(path)
        except FileExistsError:
            if not _remove_left_over(path):
                count += 1


def _is_file_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_left_over(path: str) -> bool:
    """Remove a file that no process is writing. False if one is, or if that is unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not _lock(descriptor):
            return False
        if _is_file_at(path, descriptor):
            os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    """Make a rename in ``folder`` last through a power cut, where the system offers that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileSource:
    """Ranged reads of a seekable binary file, counted from where it stands now."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._base = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self._base
        file.seek(self._base)
        self._descriptor = _descriptor_of(file)

    def read(self, offset: int, count: int) -> bytes:
        """``count`` bytes from ``offset``; fewer only at the end of the file."""
        self._file.seek(self._base + offset)
        data: bytes = self._file.read(min(count, self.size - offset))
        return data

    def read_into(self, offset: int, buffer: Any) -> int:
        """Fill ``buffer`` from ``offset`` and return its CRC-32.

        The caller has compared ``offset`` and the buffer's length with ``size``.
        """
        if self._descriptor is not None:
            return _C._read_file_range(self._descriptor, self._base + offset, buffer)
        self._file.seek(self._base + offset)
        view = memoryview(buffer)
        done = 0
        while done < len(view):
            if hasattr(self._file, "readinto"):
                count = self._file.readinto(view[done:])
            else:
                piece = self._file.read(len(view) - done)
                count = len(piece)
                view[done : done + count] = piece
            if not count:
                raise RuntimeError("load: the file became shorter while it was read")
            done += count
        return _C._crc32(view)


def _descriptor_of(file: Any) -> int | None:
    """The descriptor of a file on disk; None for any other file object."""
    import io

    if type(file) is io.BufferedReader:
        file = file.raw
    return file.fileno() if type(file) is io.FileIO else None


class MappedSource:
    """A file mapped into memory; pages are read when first used and writes stay private."""

    def __init__(self, file: Any) -> None:
        import mmap

        self.size = os.fstat(file.fileno()).st_size
        # mmap cannot map 0 bytes; an empty file is reported later as too short.
        self._map: Any = b""
        if self.size:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def read(self, offset: int, count: int) -> bytes:
        """A copy of ``count`` bytes from ``offset``."""
        return bytes(self._map[offset : offset + count])

    def read_into(self, offset: int, buffer: Any) -> int:
        """Fill ``buffer`` from ``offset`` and return its CRC-32."""
        buffer[:] = memoryview(self._map)[offset : offset + len(buffer)]
        return _C._crc32(buffer)

    def view(self, offset: int, count: int) -> memoryview:
        """The bytes themselves, not a copy; they keep the map alive."""
        return memoryview(self._map)[offset : offset + count]
