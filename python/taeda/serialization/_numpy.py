"""NumPy's files: ``.npy`` for one tensor, ``.npz`` for a dict of named ones."""

from __future__ import annotations

import io
import struct
from typing import Any

import taeda

from ._files import MappedSource
from ._limits import Budget, TooCostlyError, current
from ._reader import Placement
from ._zip import ArchiveReader


def _array(tensor: Any, what: str) -> Any:
    """A tensor's values as a NumPy array; ``what`` names it in messages."""
    if not isinstance(tensor, taeda.Tensor):
        raise TypeError(f"save: {what} must be a tensor, got {type(tensor).__name__}")
    try:
        return tensor.detach().cpu().numpy()
    except TypeError:
        raise ValueError(
            f"save: {what} is of dtype {tensor.dtype!r}, which NumPy's formats lack"
        ) from None


def write_npy(tensor: Any, file: Any) -> None:
    """Write one tensor.

    Raises:
        TypeError: it is something else.
        ValueError: NumPy lacks its dtype.
    """
    import numpy

    numpy.lib.format.write_array(file, numpy.asanyarray(_array(tensor, "obj")), allow_pickle=False)


def write_npz(tensors: Any, file: Any) -> None:
    """Write a dict of named tensors.

    Raises:
        TypeError: it is something else.
        ValueError: NumPy lacks a tensor's dtype.
    """
    import zipfile

    import numpy

    if not isinstance(tensors, dict):
        raise TypeError(
            f"save: an .npz file holds a dict of named tensors, got {type(tensors).__name__}"
        )
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"save: an .npz file holds a dict of named tensors, got name {name!r}")
        arrays[name] = _array(tensor, repr(name))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            # A fixed date: files with the same content are the same.
            entry = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(entry, "w", force_zip64=array.nbytes > 1 << 30) as part:
                numpy.lib.format.write_array(part, array, allow_pickle=False)


def is_npz(source: Any, start: bytes) -> bool:
    """Whether a zip archive's first entry is an array, or it has none."""
    if len(start) < 30:
        return True
    (length,) = struct.unpack_from("<H", start, 26)
    name = source.read(30, length)
    return name.endswith(b".npy")


def read_header(file: Any, size: int) -> tuple[tuple[int, ...], Any, Any, int]:
    """An array's shape, dtype, order and first byte, from the start of a ``.npy`` file.

    Raises:
        ValueError: it is none, or not one of ``size`` bytes.
    """
    import math
    import tokenize

    import numpy

    formats: Any = numpy.lib.format
    try:
        old = formats.read_magic(file) == (1, 0)
        read = formats.read_array_header_1_0 if old else formats.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except TooCostlyError:
        raise
    except (
        SyntaxError, TypeError, LookupError, RecursionError, MemoryError, AttributeError,
        OverflowError, RuntimeError, tokenize.TokenError, Warning,
    ) as error:  # fmt: skip
        raise ValueError(f"its header cannot be read ({str(error)[:300]})") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if len(shape) > 64 or not all(type(n) is int and 0 <= n < 1 << 63 for n in shape):
        raise ValueError("its shape is none of a tensor")
    start = file.tell()
    if start + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of shape {shape} and {dtype} does not fit its {size} bytes")
    return shape, dtype, "F" if fortran else "C", start


def _tensor(array: Any, what: str, placement: Placement) -> Any:
    """A tensor of an array's values, on the device given by ``placement``."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = array.copy()
    try:
        tensor = taeda.from_numpy(array)
    except TypeError:
        raise RuntimeError(
            f"load: {what} is of dtype {array.dtype}, which tensors do not have"
        ) from None
    return placement.place(tensor, "cpu")


def read_npy(source: Any, label: str, placement: Placement) -> Any:
    """Read one array as a tensor; where the file is mapped, over the mapped memory.

    Raises:
        RuntimeError: the file is damaged, or its dtype is none of a tensor.
    """
    import numpy

    try:
        head = io.BytesIO(source.read(0, 1 << 16))
        shape, dtype, order, start = read_header(head, source.size)
        if isinstance(source, MappedSource):
            array = numpy.ndarray(shape, dtype, source.view(0, source.size), start, order=order)
        else:
            current().take(source.size, "its array")
            array = numpy.empty(shape, dtype, order)
            values: Any = array.reshape(-1, order="A").view("u1")
            source.read_into(start, memoryview(values))
    except (ValueError, EOFError, OSError) as error:
        raise RuntimeError(f"load: {label} is damaged, or no .npy file: {error}") from None
    return _tensor(array, label, placement)


def read_npz(source: Any, label: str, placement: Placement) -> dict[str, Any]:
    """Read a dict of named tensors; checksums are compared.

    Raises:
        RuntimeError: the file is damaged, or an array's dtype is none of a tensor.
        ValueError: the file is to be mapped, which this format does not offer.
    """
    import numpy

    if isinstance(source, MappedSource):
        raise ValueError(
            "load: mmap=True is for PyTorch's format, safetensors and npy, not for npz"
        )
    result = {}
    archive = open_npz(source, label, current())
    for entry in archive.entries:
        data = archive.read(entry)
        name = entry.removesuffix(".npy")
        shape, dtype, order, start = npz_header(data, entry, label)
        # The header has checked that the values fill the rest.
        array = numpy.frombuffer(data, dtype, offset=start) if len(data) > start else None
        array = numpy.empty(shape, dtype) if array is None else array.reshape(shape, order=order)
        result[name] = _tensor(array, f"{name!r} in {label}", placement)
    return result


def open_npz(source: Any, label: str, budget: Budget | None = None) -> ArchiveReader:
    """The archive of an ``.npz`` file."""
    return ArchiveReader(source, label, budget, prefixed=False)


def npz_header(data: Any, entry: str, label: str) -> tuple[tuple[int, ...], Any, Any, int]:
    """What `read_header` returns, for an entry's bytes.

    Raises:
        RuntimeError: it is damaged.
    """
    try:
        return read_header(io.BytesIO(memoryview(data)[: 1 << 16]), len(data))
    except (ValueError, EOFError, OSError) as error:
        why = f"its array {entry!r}: {error}"
        raise RuntimeError(f"load: {label} is damaged, or no .npz file: {why}") from None
