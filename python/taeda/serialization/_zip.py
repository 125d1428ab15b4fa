"""Reading and writing the zip archives that hold checkpoints.

Only what checkpoints need, but that strictly: entries are stored uncompressed and start on 64-byte
boundaries, so that a file can be memory-mapped; every size and offset a file claims is compared
with the file's length before anything is allocated; checksums are compared on reading.
Archives over 4 GiB use the zip64 fields. (Layout: PKWARE's APPNOTE, sections 4.3 and 4.4.)
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda import _C

from ._files import write_all
from ._limits import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

ALIGNMENT = 64

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")

_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64_MAGIC, _LOCATOR64_MAGIC = b"PK\x06\x06", b"PK\x06\x07"
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_UTF8 = 0x800
_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8
_EPOCH = 0x21  # 1 January 1980: files with the same content are the same, whenever written
_PIECE = 4 << 20  # bytes unpacked at a time


class DamagedArchiveError(RuntimeError):
    """The bytes are not those of a whole, undamaged archive."""


class _Written(NamedTuple):
    name: bytes
    crc: int
    size: int
    offset: int


class ArchiveWriter:
    """Writes an archive front to back through ``write``, which need not be able to seek."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self._write = write
        self._offset = 0
        self._entries: list[_Written] = []

    def _put(self, data: Any, size: int) -> None:
        write_all(self._write, data)
        self._offset += size

    def add(self, name: str, data: bytes | memoryview) -> None:
        """Append one entry."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        size, crc, start, encoded = view.nbytes, _C._crc32(view), self._offset, name.encode()
        long = size >= _MAX32
        extra = struct.pack("<2H2Q", 1, 16, size, size) if long else b""
        # A private extra field ("FB", which readers skip) moves the data to the next boundary.
        fixed = start + _LOCAL.size + len(encoded) + len(extra) + 4
        padding = -fixed % ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + bytes(padding)
        shown = _MAX32 if long else size
        version = 45 if long else 20
        header = _LOCAL.pack(
            _LOCAL_MAGIC, version, _UTF8, _STORED, 0, _EPOCH, crc, shown, shown,
            len(encoded), len(extra),
        )  # fmt: skip
        header += encoded + extra
        self._put(header, len(header))
        if size:
            self._put(view, size)
        self._entries.append(_Written(encoded, crc, size, start))

    def finish(self) -> None:
        """Write the directory that makes the archive whole."""
        start, blocks = self._offset, []
        for entry in self._entries:
            long = entry.size >= _MAX32 or entry.offset >= _MAX32
            extra = b""
            if long:
                fields = (1, 24, entry.size, entry.size, entry.offset)
                extra = struct.pack("<2H3Q", *fields)
            size = _MAX32 if long else entry.size
            version = 45 if long else 20
            blocks.append(
                _CENTRAL.pack(
                    _CENTRAL_MAGIC, version, version, _UTF8, _STORED, 0, _EPOCH, entry.crc,
                    size, size, len(entry.name), len(extra), 0, 0, 0, 0,
                    _MAX32 if long else entry.offset,
                )
            )  # fmt: skip
            blocks += [entry.name, extra]
        directory = b"".join(blocks)
        count, size = len(self._entries), len(directory)
        tail = b""
        if count >= _MAX16 or size >= _MAX32 or start >= _MAX32:
            tail += _END64.pack(_END64_MAGIC, 44, 45, 45, 0, 0, count, count, size, start)
            tail += _LOCATOR64.pack(_LOCATOR64_MAGIC, 0, start + size, 1)
        short = min(count, _MAX16)
        tail += _END.pack(_END_MAGIC, 0, 0, short, short, min(size, _MAX32), min(start, _MAX32), 0)
        self._put(directory + tail, size + len(tail))


class Entry(NamedTuple):
    """An entry of the directory."""

    header: int  # where its local header starts
    packed: int  # bytes it takes in the file
    size: int  # bytes it holds
    method: int
    crc: int
    end: int  # where the next entry, or the directory, starts


class ArchiveReader:
    """Reads an archive from ``source``, an object with ``size`` and ``read(offset, count)``.

    Every entry's name starts with the archive's own name, as in ``archive/data.pkl``; here names
    are given without it. In one that is not ``prefixed``, as NumPy's are, names are what they are.
    ``label`` names the file in messages; what is unpacked is charged to ``budget``.

    Raises:
        DamagedArchiveError: this is no archive, or not a whole one.
    """

    def __init__(
        self, source: Any, label: str, budget: Budget | None = None, *, prefixed: bool = True
    ) -> None:
        self.source = source
        self.label = label
        self.budget = Budget(label, source.size) if budget is None else budget
        self._prefixed = prefixed
        self.entries: dict[str, Entry] = {}
        self.prefix = ""
        self._read_directory(*self._find_directory())

    def _bad(self, why: str) -> DamagedArchiveError:
        return DamagedArchiveError(f"load: {self.label} is damaged or cut short: {why}")

    def _find_directory(self) -> tuple[int, int, int]:
        """The directory's offset, its size in bytes, and how many entries it lists."""
        total = self.source.size
        if total < _END.size:
            raise self._bad("it is too short to be an archive")
        tail_at = max(0, total - _END.size - _MAX16)
        tail = self.source.read(tail_at, total - tail_at)
        found = tail.rfind(_END_MAGIC)
        if found < 0 or len(tail) - found < _END.size:
            raise self._bad("the archive's directory, which ends the file, is missing")
        _, disk, start_disk, here, count, size, start, comment = _END.unpack_from(tail, found)
        end_at = tail_at + found
        if end_at + _END.size + comment != total:
            raise self._bad("it does not end where its archive ends")
        # Some writers add the zip64 records to every archive, needed or not.
        locator_at = end_at - _LOCATOR64.size
        locator = self.source.read(locator_at, _LOCATOR64.size) if locator_at >= 0 else b""
        if locator[:4] == _LOCATOR64_MAGIC:
            _, disk, end64_at, disks = _LOCATOR64.unpack(locator)
            if disks != 1 or end64_at + _END64.size != locator_at:
                raise self._bad("the pointer to its directory leads nowhere")
            record = _END64.unpack(self.source.read(end64_at, _END64.size))
            if record[0] != _END64_MAGIC:
                raise self._bad("the pointer to its directory leads nowhere")
            disk, start_disk, here, count, size, start = record[4:]
            end_at = end64_at
        if disk or start_disk or here != count:
            raise self._bad("it claims to be one of several parts")
        if start + size != end_at or count * _CENTRAL.size > size:
            raise self._bad("the size of its directory does not fit the file")
        return start, size, count

    def _read_directory(self, start: int, size: int, count: int) -> None:
        data = self.source.read(start, size)
        at = 0
        self.budget.take(size + 300 * count, "its directory")
        for _ in range(count):
            if data[at : at + 4] != _CENTRAL_MAGIC or at + _CENTRAL.size > size:
                raise self._bad("its directory is broken")
            fields = _CENTRAL.unpack_from(data, at)
            flags, method, crc, packed, full = fields[3], fields[4], *fields[7:10]
            name_size, extra_size, comment_size, header = *fields[10:13], fields[16]
            at += _CENTRAL.size
            name = data[at : at + name_size]
            extra = data[at + name_size : at + name_size + extra_size]
            at += name_size + extra_size + comment_size
            if at > size:
                raise self._bad("its directory is broken")
            full, packed, header = self._long_fields(extra, full, packed, header)
            try:
                text = bytes(name).decode()
            except UnicodeDecodeError:
                raise self._bad("its directory is broken") from None
            prefix, slash, short = text.partition("/") if self._prefixed else ("", "/", text)
            if not slash or (self.entries and prefix != self.prefix) or short in self.entries:
                raise self._bad(f"it has an entry that does not belong in it, {text!r}")
            if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
                raise self._bad(f"its entry {text!r} is stored in a way checkpoints are not")
            if header + _LOCAL.size + name_size + packed > start:
                raise self._bad(f"its entry {text!r} claims more bytes than the file has")
            if (method == _STORED and packed != full) or full > 1100 * packed:
                raise self._bad(f"its entry {text!r} claims an impossible size")
            self.prefix = prefix
            self.entries[short] = Entry(header, packed, full, method, crc, start)
        if at != size:
            raise self._bad("its directory is broken")
        self._find_ends(start)
        unpacked = sum(e.size for e in self.entries.values() if e.method != _STORED)
        if unpacked > self.budget.memory - self.budget.used:
            self.budget.take(unpacked, f"{unpacked} of its entries")

    def _find_ends(self, directory: int) -> None:
        """Note where each entry must end, so that no two share bytes of the file."""
        end, prefix = directory, len(self.prefix.encode()) + 1 if self._prefixed else 0
        for name, entry in sorted(self.entries.items(), key=lambda e: e[1].header, reverse=True):
            least = _LOCAL.size + prefix + len(name.encode()) + entry.packed
            if entry.header + least > end:
                raise self._bad(f"its entry {name!r} shares bytes with another")
            self.entries[name] = entry._replace(end=end)
            end = entry.header

    def _long_fields(self, extra: Any, size: int, packed: int, header: int) -> list[int]:
        """The three numbers, each taken from the zip64 field where the short form is full."""
        fields = [size, packed, header]
        if _MAX32 not in fields:
            return fields
        at = 0
        while at + 4 <= len(extra):
            tag, length = struct.unpack_from("<2H", extra, at)
            if tag == 1 and at + 4 + length <= len(extra):
                values = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
                try:
                    return [next(values) if v == _MAX32 else v for v in fields]
                except (StopIteration, RuntimeError):
                    break
            at += 4 + length
        raise self._bad("its directory is broken")

    def offset(self, name: str) -> int:
        """Where the bytes of an entry start in the file."""
        entry = self.entries[name]
        full_name = (f"{self.prefix}/{name}" if self._prefixed else name).encode()
        head = self.source.read(entry.header, _LOCAL.size + len(full_name))
        if len(head) < _LOCAL.size:
            raise self._bad(f"its entry {name!r} is not where the directory says")
        fields = _LOCAL.unpack_from(head)
        if fields[0] != _LOCAL_MAGIC or head[_LOCAL.size :] != full_name:
            raise self._bad(f"its entry {name!r} is not where the directory says")
        start: int = entry.header + _LOCAL.size + fields[9] + fields[10]
        if fields[9] != len(full_name) or start + entry.packed > entry.end:
            raise self._bad(f"its entry {name!r} is not where the directory says")
        return start

    def entry(self, name: str) -> Entry:
        """The directory's record of an entry."""
        entry = self.entries.get(name)
        if entry is None:
            raise self._bad(f"its entry {name!r} is missing")
        return entry

    def read(self, name: str) -> bytearray:
        """The bytes of an entry, checksum compared.

        Raises:
            DamagedArchiveError: there is no such entry, or its bytes are not what was written.
        """
        size = self.entry(name).size
        self.budget.take(size, f"its entry {name!r}")
        buffer = bytearray(size)
        self.read_into(name, buffer)
        return buffer

    def read_short(self, name: str) -> bytes:
        """The bytes of an entry that holds a word."""
        if self.entry(name).size > 100:
            raise self._bad(f"its entry {name!r} is too long")
        return bytes(self.read(name))

    def read_into(self, name: str, buffer: Any) -> None:
        """Fill ``buffer``, which has the entry's size, with its bytes; compares the checksum.

        Raises:
            DamagedArchiveError: there is no such entry, or its bytes are not what was written.
        """
        entry = self.entry(name)
        start = self.offset(name)
        if entry.method == _STORED:
            crc = self.source.read_into(start, buffer)
        else:
            crc = self._unpack(name, entry, start, buffer)
        if crc != entry.crc:
            raise self._bad(f"the checksum of its entry {name!r} does not fit its bytes")

    def _unpack(self, name: str, entry: Entry, start: int, buffer: Any) -> int:
        import zlib

        unpacker, rest, at, done = zlib.decompressobj(-15), b"", 0, 0
        try:
            while not unpacker.eof:
                if not rest and at < entry.packed:
                    rest = self.source.read(start + at, min(_PIECE, entry.packed - at))
                    at += len(rest)
                data = unpacker.decompress(rest, min(_PIECE, entry.size - done + 1))
                if not data and len(rest) == len(unpacker.unconsumed_tail) and at == entry.packed:
                    break
                rest = unpacker.unconsumed_tail
                if done + len(data) > entry.size:
                    break
                buffer[done : done + len(data)] = data
                done += len(data)
        except zlib.error as error:
            raise self._bad(f"its entry {name!r} cannot be unpacked ({error})") from None
        if done != entry.size or not unpacker.eof:
            raise self._bad(f"its entry {name!r} does not have the size the directory says")
        return _C._crc32(buffer)

    def checksum_fits(self, name: str) -> bool:
        """Whether an entry's bytes have the checksum in the directory; little is held in memory."""
        entry = self.entry(name)
        if entry.method != _STORED:
            return _fits(lambda: self.read(name))
        return _fits(lambda: self._compare(name, entry))

    def _compare(self, name: str, entry: Entry) -> None:
        start, crc, step = self.offset(name), 0, 32 << 20
        piece = memoryview(bytearray(min(step, entry.size)))
        for at in range(0, entry.size, step):
            part = piece[: min(step, entry.size - at)]
            crc = _C._crc32_combine(crc, self.source.read_into(start + at, part), len(part))
        if crc != entry.crc:
            raise self._bad(f"the checksum of its entry {name!r} does not fit its bytes")

    def is_stored(self, name: str) -> bool:
        """Whether an entry is uncompressed, so that it can be mapped."""
        return self.entry(name).method == _STORED


def _fits(check: Callable[[], Any]) -> bool:
    try:
        check()
    except DamagedArchiveError:
        return False
    return True
