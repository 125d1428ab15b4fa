"""The safetensors format: a JSON header with names, dtypes and shapes, then the tensors' bytes.

The header's length comes first, as eight bytes, low ones first, as everywhere in the format. (The
format is described at https://github.com/huggingface/safetensors.)
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import taeda

from ._files import MappedSource, write_all
from ._limits import brief, current
from ._pickler import storage_bytes
from ._reader import Placement, mapped_bytes, new_bytes, swap_bytes

_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
_LONGEST_HEADER = 100_000_000  # as the format allows


def _dtypes() -> dict[str, Any]:
    """The format's names of taeda's dtypes."""
    return {code: getattr(taeda, name) for code, name in _NAMES.items() if hasattr(taeda, name)}


def _part_size(dtype: Any) -> int:
    """The size of the unit of byte order: a number, or half of a complex number."""
    size: int = dtype.itemsize
    return size // 2 if dtype.is_complex else size


def write_file(tensors: Any, write: Any, metadata: dict[str, str] | None = None) -> None:
    """Write a dict of named tensors, and some texts about them.

    Raises:
        TypeError: it is something else.
        ValueError: the format has no name for a tensor's dtype.
    """
    if not isinstance(tensors, dict):
        raise TypeError(
            f"save: a .safetensors file holds a dict of named tensors, got {type(tensors).__name__}"
        )
    dtypes = {dtype: code for code, dtype in _dtypes().items()}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, taeda.Tensor):
            raise TypeError(
                "save: a .safetensors file holds a dict of named tensors, got "
                f"{type(tensor).__name__} under {name!r}"
            )
        if tensor.dtype not in dtypes:
            raise ValueError(
                f"save: {name!r} is of dtype {tensor.dtype!r}, which the safetensors format lacks"
            )
    texts = {} if metadata is None else metadata
    if not all(isinstance(text, str) for pair in texts.items() for text in pair):
        raise TypeError(f"save: metadata must map strings to strings, got {metadata!r}")
    header: dict[str, Any] = {"__metadata__": dict(texts)} if texts else {}
    # Larger items first: then every tensor starts at a multiple of its item's size.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": dtypes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write_all(write, len(text).to_bytes(8, "little") + text)
    for name in order:
        tensor = tensors[name].detach().cpu().contiguous()
        size = tensor.dtype.itemsize
        start = tensor.storage_offset() * size
        data = storage_bytes(tensor)[start : start + tensor.numel() * size]
        if sys.byteorder == "big":
            data = memoryview(bytearray(data))
            swap_bytes(data, _part_size(tensor.dtype))
        write_all(write, data)


class Contents:
    """An opened file: its checked header, and tensors read one at a time.

    Args:
        source: the file.
        label: names it in messages.

    Raises:
        RuntimeError: the file is damaged.
    """

    def __init__(self, source: Any, label: str) -> None:
        self._source, self._label, self._dtypes = source, label, _dtypes()
        self._header, self._start = _read_header(source, label)
        texts = self._header.pop("__metadata__", None)
        if texts is not None and not _is_texts(texts):
            raise _bad(label, "its metadata are not texts by name")
        self.metadata: dict[str, str] | None = texts
        self._names = sorted(self._header, key=lambda name: self._header[name]["data_offsets"])
        self._check_offsets()

    def _check_offsets(self) -> None:
        """Raise unless the tensors are contiguous up to the end of the file."""
        at = 0
        for name in self.names():
            begin, end = self._header[name]["data_offsets"]
            if begin != at or end - begin != self.size(name):
                why = f"the place of {brief(name)} does not fit its shape or the file"
                raise _bad(self._label, why)
            at = end
        held = self._source.size - self._start
        if held != at:
            raise _bad(self._label, f"it has {held} bytes of tensors, its header tells of {at}")

    def size(self, name: str) -> int:
        """A tensor's bytes."""
        shape, dtype = self.described(name)
        return math.prod(shape) * int(dtype.itemsize)

    def names(self) -> list[str]:
        """The tensors' names, in the order of their offsets."""
        return list(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._header

    def described(self, name: str) -> tuple[list[int], Any]:
        """A tensor's shape and dtype."""
        entry = self._header[name]
        return entry["shape"], self._dtypes[entry["dtype"]]

    def code(self, name: str) -> str:
        """The format's name of a tensor's dtype."""
        return str(self._header[name]["dtype"])

    def read(self, name: str, placement: Placement) -> Any:
        """A tensor; over the mapped memory where the file is mapped and ``placement`` allows."""
        shape, dtype = self.described(name)
        if placement.is_meta():
            return taeda.empty(shape, dtype=dtype, device="meta")
        begin, size = self._start + self._header[name]["data_offsets"][0], self.size(name)
        mapped = isinstance(self._source, MappedSource)
        if mapped and sys.byteorder == "little" and begin % dtype.itemsize == 0:
            flat = mapped_bytes(self._source.view(begin, size))
        else:
            flat, memory = new_bytes(size)
            self._source.read_into(begin, memory)
            if sys.byteorder == "big":
                swap_bytes(memory, _part_size(dtype))
        return placement.place(flat, "cpu").view(dtype).view(shape).detach()


def read_file(source: Any, label: str, placement: Placement) -> dict[str, Any]:
    """Read the dict of named tensors that a file holds; ``load`` explains the arguments.

    Raises:
        RuntimeError: the file is damaged.
    """
    contents = Contents(source, label)
    return {name: contents.read(name, placement) for name in contents.names()}


def _bad(label: str, why: str) -> RuntimeError:
    return RuntimeError(f"load: {label} is damaged, or no safetensors file: {why}")


def _read_header(source: Any, label: str) -> tuple[dict[str, Any], int]:
    """The checked header, and where the tensors' bytes start."""
    if source.size < 8:
        raise _bad(label, "it is too short")
    size = int.from_bytes(source.read(0, 8), "little")
    if size > min(_LONGEST_HEADER, source.size - 8):
        raise _bad(label, f"its header would be {size} bytes long")
    current().take(8 * size, "its header")
    try:
        header = json.loads(source.read(8, size), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _bad(label, f"its header cannot be read ({error})") from None
    if not isinstance(header, dict):
        raise _bad(label, "its header is not a JSON object")
    dtypes = _dtypes()
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("dtype"), str)
            or entry["dtype"] not in dtypes
            or not _is_sizes(entry.get("shape"))
            or not _is_sizes(entry.get("data_offsets"))
            or len(entry["data_offsets"]) != 2
        ):
            why = f"its header does not describe {brief(name)} rightly: {brief(entry)}"
            raise _bad(label, why)
    return header, 8 + size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict; one in which a name appears twice means two things."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name appears twice")
    return made


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_sizes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= 64
        and all(type(n) is int and 0 <= n < 1 << 63 for n in value)
    )
