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


def write_all(write: Callable[[Any], Any], data: Any) -> None:
    """Write all of ``data``, also through a raw file that takes a part of it at a time.

    Raises:
        OSError: the file takes no more.
    """
    view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
    while True:
        count = write(view)
        if type(count) is not int or count >= len(view):
            return
        if count <= 0:
            raise OSError(f"save: {len(view)} bytes were to be written, and write() took {count}")
        view = view[count:]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a binary file that replaces ``path`` if the block ends without an exception.

    What is written goes to a new file in the same directory, which has no name while it is written
    where the system can do that, is flushed to the disk and is then given the name ``path``, or
    renamed over the file of that name, in one step: whenever the process or the machine stops,
    ``path`` is either the old file or the new one, each whole. If the block raises, the new file is
    gone and ``path`` is untouched. A process that is killed between naming the new file and
    renaming it leaves it behind, as ``.NAME.0.saving``; so does one that is killed at any time on a
    file system without unnamed files. The next save to the same path removes it. Symbolic links
    are followed; pipes and devices are written directly.
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
            if temporary is None and mode is None and _link_new(file.fileno(), target):
                temporary = target
            elif temporary is None:
                temporary = _claim(folder, name, lambda path: _link(file.fileno(), path))[0]
            if temporary != target:
                os.replace(temporary, target)
    except BaseException:
        if temporary not in (None, target):
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


def _link_new(descriptor: int, path: str) -> bool:
    """Give an open file without a name the name ``path``; False where that is taken by now."""
    try:
        _link(descriptor, path)
    except FileExistsError:
        return False
    return True


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
        file.seek(0, os.SEEK_END)
        self.size = file.tell() - self._base
        file.seek(self._base)
        if self.size < 0:
            raise RuntimeError("load: the file object stands beyond its end")
        self._descriptor = _descriptor_of(file)

    def read(self, offset: int, count: int) -> bytes:
        """``count`` bytes from ``offset``; fewer only at the end of the file."""
        wanted = min(count, self.size - offset)
        if wanted <= 0:
            return b""
        self._file.seek(self._base + offset)
        data = self._piece(wanted)
        if len(data) < wanted:  # a raw file gives what it has at hand
            pieces = [data]
            while (wanted := wanted - len(pieces[-1])) > 0:
                pieces.append(self._piece(wanted))
            data = b"".join(pieces)
        return data

    def _piece(self, most: int) -> bytes:
        data = self._file.read(most)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise RuntimeError(f"load: read() of the file object gave {type(data).__name__}")
        if not 0 < len(data) <= most:
            raise RuntimeError(
                f"load: the file became shorter while it was read: read({most}) gave "
                f"{len(data)} bytes"
            )
        return bytes(data)

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
                piece = self._piece(len(view) - done)
                count = len(piece)
                view[done : done + count] = piece
            if type(count) is not int or not 0 < count <= len(view) - done:
                raise RuntimeError(
                    "load: the file became shorter while it was read: readinto() of "
                    f"{len(view) - done} bytes gave {count!r}"
                )
            done += count
        return _C._crc32(view)


def _descriptor_of(file: Any) -> int | None:
    """The descriptor of a file on disk; None for any other file object."""
    import io

    if type(file) is io.BufferedReader:
        file = file.raw
    return file.fileno() if type(file) is io.FileIO else None


class MappedSource:
    """A file mapped into memory; pages are read when first used and writes stay private.

    A file that is cut while it is mapped cannot be read beyond its new end: the system then ends
    the process with SIGBUS. ``check`` sees it while a file is loaded.
    """

    def __init__(self, file: Any) -> None:
        import mmap

        self._file, self.size = file, os.fstat(file.fileno()).st_size
        # mmap cannot map 0 bytes; an empty file is reported later as too short.
        self._map: Any = b""
        if self.size:
            self._map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_COPY)

    def read(self, offset: int, count: int) -> bytes:
        """A copy of ``count`` bytes from ``offset``."""
        return bytes(self._map[offset : offset + count])

    def read_into(self, offset: int, buffer: Any) -> int:
        """Fill ``buffer`` from ``offset`` and return its CRC-32."""
        buffer[:] = memoryview(self._map)[offset : offset + len(buffer)]
        return _C._crc32(buffer)

    def check(self) -> None:
        """Raise where the file is shorter by now than when it was mapped."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self.size:
            raise RuntimeError(
                f"load: the file became shorter while it was read: from {self.size} bytes to {size}"
            )

    def view(self, offset: int, count: int) -> memoryview:
        """The bytes themselves, not a copy; they keep the map alive."""
        return memoryview(self._map)[offset : offset + count]
