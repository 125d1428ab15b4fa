"""What a shared library asks of others: a reader of 64-bit little-endian ELF."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_DYNSYM, _DYNAMIC, _VERSYM, _VERNEED = 11, 6, 0x6FFFFFFF, 0x6FFFFFFE
_NEEDED = 1


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    info: int


def _sections(data: bytes) -> list[_Section]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    found = []
    for at in range(start, start + size * count, size):
        _, kind, _, _, offset, length, link, info = struct.unpack_from("<IIQQQQII", data, at)
        found.append(_Section(kind, offset, length, link, info))
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def needed(data: bytes) -> list[str]:
    """The libraries it names (DT_NEEDED)."""
    sections = _sections(data)
    names = []
    for s in sections:
        if s.kind == _DYNAMIC:
            strings = sections[s.link].offset
            for at in range(s.offset, s.offset + s.size, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == _NEEDED:
                    names.append(_text(data, strings + value))
    return names


def _versions(data: bytes, sections: list[_Section]) -> dict[int, str]:
    """The names of versions asked for (.gnu.version_r), by their numbers."""
    found = {}
    for s in sections:
        if s.kind != _VERNEED:
            continue
        strings, at = sections[s.link].offset, s.offset
        for _ in range(s.info):
            _, count, _, first, step = struct.unpack_from("<HHIII", data, at)
            entry = at + first
            for _ in range(count):
                _, _, number, name, following = struct.unpack_from("<IHHII", data, entry)
                found[number & 0x7FFF] = _text(data, strings + name)
                entry += following
            at += step
    return found


def dynamic_symbols(data: bytes, undefined: bool = True) -> Iterator[tuple[str, str | None]]:
    """Names and versions of the symbols it asks for; or of those it defines."""
    sections = _sections(data)
    versions = _versions(data, sections)
    numbers = next((s.offset for s in sections if s.kind == _VERSYM), None)
    for s in sections:
        if s.kind != _DYNSYM:
            continue
        strings = sections[s.link].offset
        for i, at in enumerate(range(s.offset, s.offset + s.size, 24)):
            name, info, _, home = struct.unpack_from("<IBBH", data, at)
            weak = info >> 4 == 2
            if not i or (home == 0) != undefined or (undefined and weak):
                continue
            number = struct.unpack_from("<H", data, numbers + 2 * i)[0] & 0x7FFF if numbers else 1
            yield _text(data, strings + name), versions.get(number)
