"""Which format a file has, from its first bytes."""

from __future__ import annotations

from typing import Any

from ._limits import Budget, reading
from ._reader import Placement, read_archive

_ZIP, _EMPTY_ZIP, _NPY = b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY"


def _looks_like_safetensors(start: bytes) -> bool:
    """Whether a file starts with the length of a JSON object, and that object."""
    return len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 40


def recognise(source: Any, suffix: str) -> str:
    """A file's format: archive, npz, npy, legacy, tar, safetensors or, where unknown, nothing.

    ``suffix`` is that of the file's name, and says what is meant where the bytes do not.
    """
    from ._legacy import is_legacy
    from ._numpy import is_npz

    start = source.read(0, 512)
    if start[:4] in (_ZIP, _EMPTY_ZIP):
        return "npz" if is_npz(source, start) else "archive"
    if start[:6] == _NPY:
        return "npy"
    if is_legacy(start):
        return "legacy"
    if start[257:262] == b"ustar":
        return "tar"
    return "safetensors" if suffix == ".safetensors" or _looks_like_safetensors(start) else ""


def read_any(
    source: Any,
    label: str,
    map_location: Any,
    weights_only: bool,
    suffix: str = "",
    max_memory: int | None = None,
) -> Any:
    """Read a file of any format that is known; ``load`` explains the arguments.

    Raises:
        EOFError: it is empty.
        RuntimeError: it is of no known format, or damaged.
    """
    placement = Placement(map_location)
    budget = Budget(label, source.size, max_memory)
    if source.size == 0 and suffix != ".safetensors":
        raise EOFError(f"load: {label} is empty, or the file object stands at its end")
    kind = recognise(source, suffix)
    if not kind:
        raise RuntimeError(
            f"load: {label} is not a checkpoint: it starts with {source.read(0, 4)!r}, as none of "
            "the known formats does (PyTorch's, safetensors, npz, npy); or it is damaged"
        )
    with reading(budget):
        result = _read(kind, source, label, placement, weights_only)
    if hasattr(source, "check"):
        source.check()
    return result


def _read(kind: str, source: Any, label: str, placement: Placement, weights_only: bool) -> Any:
    from . import _legacy, _numpy, _safetensors

    if kind == "archive":
        return read_archive(source, label, placement, weights_only)
    if kind == "npz":
        return _numpy.read_npz(source, label, placement)
    if kind == "npy":
        return _numpy.read_npy(source, label, placement)
    if kind == "safetensors":
        return _safetensors.read_file(source, label, placement)
    if kind == "legacy":
        return _legacy.read_legacy(source, label, placement, weights_only)
    return _legacy.read_tar(source, label, placement, weights_only)
