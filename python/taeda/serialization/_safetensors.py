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

from ._files import MappedSource
from ._pickler import storage_bytes
from ._reader import Placement, bytes_tensor, swap_bytes

_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
_LONGEST_HEADER = 100_000_000  # as the format allows


def _part_size(dtype: Any) -> int:
    """The size of what has a byte order: a number, or half of a complex number."""
    size: int = dtype.itemsize
    return size // 2 if dtype.is_complex else size


def write_file(tensors: Any, write: Any) -> None:
    """Write a dict of named tensors.

    Raises:
        TypeError: it is something else.
        ValueError: the format has no name for a tensor's dtype.
    """
    if not isinstance(tensors, dict):
        raise TypeError(
            f"save: a .safetensors file holds a dict of named tensors, got {type(tensors).__name__}"
        )
    dtypes = {getattr(taeda, name): code for code, name in _NAMES.items()}
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
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
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
    write(len(text).to_bytes(8, "little") + text)
    for name in order:
        tensor = tensors[name].detach().cpu().contiguous()
        size = tensor.dtype.itemsize
        start = tensor.storage_offset() * size
        data = storage_bytes(tensor)[start : start + tensor.numel() * size]
        if sys.byteorder == "big":
            data = memoryview(bytearray(data))
            swap_bytes(data, _part_size(tensor.dtype))
        write(data)


def read_file(source: Any, label: str, map_location: Any) -> dict[str, Any]:
    """Read the dict of named tensors that a file holds; ``load`` explains the arguments.

    Raises:
        RuntimeError: the file is damaged.
    """
    placement = Placement(map_location)
    header, start = _read_header(source, label)
    result = {}
    at = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = getattr(taeda, _NAMES[entry["dtype"]]), entry["shape"]
        begin, end = entry["data_offsets"]
        if begin != at or end - begin != math.prod(shape) * dtype.itemsize:
            raise _bad(label, f"the place of {name!r} does not fit its shape or the file")
        at = end
        if start + end > source.size:
            raise _bad(label, f"{name!r} reaches beyond its end")
        if placement.is_meta():
            result[name] = taeda.empty(shape, dtype=dtype, device="meta")
            continue
        if isinstance(source, MappedSource) and sys.byteorder == "little":
            data: Any = source.view(start + begin, end - begin)
        else:
            data = bytearray(end - begin)
            source.read_into(start + begin, data)
            if sys.byteorder == "big":
                swap_bytes(data, _part_size(dtype))
        flat = placement.place(bytes_tensor(data), "cpu")
        result[name] = flat.view(dtype).view(shape).detach()
    if start + at != source.size:
        raise _bad(
            label, f"it has {source.size - start} bytes of tensors, its header tells of {at}"
        )
    return result


def _bad(label: str, why: str) -> RuntimeError:
    return RuntimeError(f"load: {label} is damaged, or no safetensors file: {why}")


def _read_header(source: Any, label: str) -> tuple[dict[str, Any], int]:
    """The checked header, and where the tensors' bytes start."""
    if source.size < 8:
        raise _bad(label, "it is too short")
    size = int.from_bytes(source.read(0, 8), "little")
    if size > min(_LONGEST_HEADER, source.size - 8):
        raise _bad(label, f"its header would be {size} bytes long")
    try:
        header = json.loads(source.read(8, size))
    except (ValueError, RecursionError) as error:
        raise _bad(label, f"its header cannot be read ({error})") from None
    if not isinstance(header, dict):
        raise _bad(label, "its header is not a JSON object")
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if (
            not isinstance(entry, dict)
            or entry.get("dtype") not in _NAMES
            or not _is_sizes(entry.get("shape"))
            or not _is_sizes(entry.get("data_offsets"))
            or len(entry["data_offsets"]) != 2
        ):
            raise _bad(label, f"its header does not describe {name!r} rightly: {entry!r:.200}")
    return header, 8 + size


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)
