"""What a file of tensors holds, without loading it: ``python -m taeda.inspect FILE...``.

Prints each tensor's name, dtype, shape and size, the totals, and whether the checksums fit. Works
for every format that ``taeda.load`` reads. Classes that the file names are neither imported nor
made, and of the tensors' bytes nothing is kept in memory.

>>> import os, tempfile
>>> import taeda
>>> from taeda.inspect import inspect_file
>>> path = os.path.join(tempfile.mkdtemp(), "model.pt")
>>> taeda.save({"weight": taeda.ones(2, 3), "epoch": 7}, path)
>>> report = inspect_file(path)
>>> [(row.name, row.shape, row.nbytes) for row in report.tensors], report.others
([('weight', (2, 3), 24)], [('epoch', '7')])
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import taeda

__all__ = ["Report", "Row", "inspect_file"]


@dataclass(frozen=True)
class Row:
    """One tensor in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    storage: int  # tensors with the same number share memory


@dataclass
class Report:
    """The contents of a file.

    Attributes:
        format: the file's format, in words.
        tensors: every tensor, in the order in which the file names them.
        others: names of what else there is, and what it is, in short.
        stored: bytes of tensors in the file; shared ones count once.
        damage: what does not fit its checksum; None where the format has none, or nobody looked.
    """

    format: str
    tensors: list[Row] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    stored: int = 0
    damage: list[str] | None = None


def inspect_file(path: str | os.PathLike[str], *, check: bool = True) -> Report:
    """Look at a file without loading it.

    Args:
        path: a file of any format that ``taeda.load`` reads.
        check: read everything once to compare checksums, where the format has them.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: it is damaged such that its contents cannot be listed, or of no known format.
    """
    from taeda.serialization import _formats
    from taeda.serialization._files import FileSource

    label = repr(str(path))
    with open(path, "rb") as file:
        source = FileSource(file)
        kind = _formats.recognise(source, os.path.splitext(os.fspath(path))[1])
        if kind == "archive":
            return _archive(source, label, check)
        if kind == "safetensors":
            return _safetensors(source, label)
        if kind == "npz":
            return _npz(source, label, check)
        if not kind:
            raise RuntimeError(f"inspect: {label} is of no format that is known, or damaged")
        words = {
            "legacy": "PyTorch before 1.6",
            "tar": "PyTorch before 0.1.10",
            "npy": "NumPy .npy",
        }
        report = Report(words[kind])
        _walk(_formats.read_any(source, label, "meta", True), report)
        return report


def _archive(source: Any, label: str, check: bool) -> Report:
    from taeda.serialization import _limits, _opaque, _reader, _unpickler

    report = Report("PyTorch zip archive")
    with _limits.reading(_limits.Budget(label, source.size)):
        archive = _reader.open_archive(source, label)
        storages = _reader.Storages(archive, _reader.Placement("meta"))
        stream = archive.read("data.pkl")
        _walk(_unpickler.SafeUnpickler(stream, storages, _opaque.opaque_class).load(), report)
    data = [name for name in archive.entries if name.startswith("data/")]
    report.stored = sum(archive.entries[name].size for name in data)
    if check:
        report.damage = [name for name in archive.entries if not archive.checksum_fits(name)]
    return report


def _safetensors(source: Any, label: str) -> Report:
    from taeda.serialization._safetensors import Contents

    contents = Contents(source, label)
    report = Report("safetensors")
    for number, name in enumerate(contents.names()):
        shape, dtype = contents.described(name)
        row = Row(name, _short(dtype), tuple(shape), contents.size(name), number)
        report.tensors.append(row)
        report.stored += row.nbytes
    report.others = [(name, repr(text)) for name, text in (contents.metadata or {}).items()]
    return report


def _npz(source: Any, label: str, check: bool) -> Report:
    from taeda.serialization._numpy import npz_header, open_npz

    report = Report("NumPy .npz")
    archive = open_npz(source, label)
    for number, (name, entry) in enumerate(archive.entries.items()):
        shape, dtype, _, start = npz_header(archive.read(name), name, label)
        row = (str(dtype), tuple(shape), entry.size - start, number)
        report.tensors.append(Row(name.removesuffix(".npy"), *row))
        report.stored += entry.packed
    if check:
        # What does not fit its checksum was not read above.
        report.damage = []
    return report


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("taeda.")


def _walk(root: Any, report: Report) -> None:
    """Note every tensor and every other value under ``root``, by its path."""
    numbers: dict[int, int] = {}
    for name, value in _leaves(root):
        if len(report.tensors) + len(report.others) == _MOST_ROWS:
            report.others.append(("...", "and so on: the file describes more than can be listed"))
            return
        if isinstance(value, taeda.Tensor):
            key = value.untyped_storage()._cdata
            number = numbers.setdefault(key, len(numbers))
            shape = tuple(value.shape)
            nbytes = value.numel() * value.dtype.itemsize
            report.tensors.append(Row(name, _short(value.dtype), shape, nbytes, number))
        else:
            report.others.append((name, _text(value)))


# A few bytes can describe a list of a list ... of which every part is shared: the first so many
# rows, and levels, are listed.
_MOST_ROWS, _MOST_LEVELS = 100_000, 200


def _leaves(root: Any) -> Iterator[tuple[str, Any]]:
    """All values in containers, and what leads to them."""
    waiting: list[tuple[str, Any, tuple[int, ...]]] = [("", root, ())]
    plain: dict[int, bool] = {}
    while waiting:
        name, value, above = waiting.pop()
        if id(value) in above:  # a structure that holds itself
            continue
        parts = _parts(value, plain) if len(above) < _MOST_LEVELS else None
        if parts is None:
            yield name, value
            continue
        below = (*above, id(value))
        found: list[Any] = []
        for key, part in parts:
            if len(found) > _MOST_ROWS:
                break
            label = key if isinstance(key, str) else _text(key)
            found.append((f"{name}.{label}"[-1000:] if name else label[:1000], part, below))
        waiting += reversed(found)


def _parts(value: Any, plain: dict[int, bool]) -> Any:
    """The names and values in a container that is listed part by part; None for any other value.

    ``plain`` remembers the lists of numbers and texts, which are one value each.
    """
    from taeda.serialization._opaque import Opaque

    if isinstance(value, Mapping) and value:
        return value.items()
    if isinstance(value, (list, tuple)) and value and not isinstance(value, taeda.Size):
        if id(value) not in plain:
            kinds = (taeda.Tensor, Mapping, list, tuple, Opaque)
            plain[id(value)] = not any(isinstance(part, kinds) for part in value)
        return None if plain[id(value)] else enumerate(value)
    if isinstance(value, Opaque) and isinstance(getattr(value, "state", None), Mapping):
        return value.state.items()
    return None


def _text(value: Any) -> str:
    from taeda.serialization._opaque import Opaque

    if isinstance(value, Opaque):
        return f"an object of {type(value).__module__}.{type(value).__name__}"
    from taeda.serialization._limits import brief

    text = brief(value, 80)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bytes_text(count: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def _lines(path: str, report: Report) -> Iterator[str]:
    yield f"{path}: {report.format}, {_bytes_text(os.path.getsize(path))}"
    rows = [
        (row.name or "(the tensor)", row.dtype, str(list(row.shape)), _bytes_text(row.nbytes))
        for row in report.tensors
    ]
    widths = [min(60, max([len(row[i]) for row in rows], default=0)) for i in range(4)]
    first: dict[int, str] = {}
    for row, tensor in zip(rows, report.tensors, strict=True):
        owner = first.setdefault(tensor.storage, row[0])
        shared = "" if owner == row[0] else f"  shares memory with {owner}"
        cells = [row[i].ljust(widths[i]) for i in range(3)] + [row[3].rjust(widths[3])]
        yield "  " + "  ".join(cells) + shared
    for name, text in report.others:
        yield f"  {name or '(the object)'} = {text}"
    elements = sum(_count(row.shape) for row in report.tensors)
    stored = _bytes_text(report.stored or sum(row.nbytes for row in report.tensors))
    yield f"{len(rows)} tensors, {elements:,} elements, {stored}"
    if report.damage is None:
        yield "checksums: none compared"
    elif report.damage:
        yield f"checksums: DAMAGED, they do not fit {', '.join(report.damage)}"
    else:
        yield "checksums: all fit"


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def main(arguments: list[str] | None = None, write: Callable[[str], Any] = print) -> int:
    """Run the command; returns its exit status: 1 where a file is damaged, missing or unknown."""
    parser = argparse.ArgumentParser(
        prog="python -m taeda.inspect", description="Show what files of tensors hold."
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--no-check", action="store_true", help="do not compare checksums")
    options = parser.parse_args(arguments)
    status = 0
    for path in options.files:
        try:
            report = inspect_file(path, check=not options.no_check)
        except (RuntimeError, OSError, EOFError, ValueError, _unpickling_error()) as error:
            write(f"{path}: {error}")
            status = 1
            continue
        for line in _lines(path, report):
            write(line)
        status |= bool(report.damage)
    return status


def _unpickling_error() -> type[Exception]:
    import pickle

    return pickle.UnpicklingError


if __name__ == "__main__":
    sys.exit(main())
