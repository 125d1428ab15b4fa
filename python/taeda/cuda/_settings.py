"""Settings of CUDA's memory, from the environment or a call.

``PYTORCH_ALLOC_CONF`` (or ``PYTORCH_CUDA_ALLOC_CONF``) is read when a CUDA device is first named.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AllocatorSettings", "change", "current", "tell"]

_ENTRY = re.compile(r"\s*(\w+)\s*:\s*(\[[^\]]*\]|[^,:\[\]]*?)\s*(?:,|$)")
_STEPS = 16  # settings of roundup_power2_divisions: for sizes from 1 MiB to 32 GiB
_VARIABLES = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


@dataclass
class AllocatorSettings:
    """What is chosen: the library's defaults to begin with."""

    text: str = ""
    expandable_segments: bool = False
    max_split_size: int = -1  # bytes; -1 is no limit
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: list[int] = field(default_factory=lambda: [0] * _STEPS)


_current = AllocatorSettings()
_told: Callable[..., Any] | None = None  # taeda_cuda_set_allocator


def current() -> AllocatorSettings:
    """What is chosen now."""
    return _current


def _bool(key: str, value: str) -> bool:
    if value not in ("True", "False"):
        raise ValueError(f"{key} must be True or False, got {value!r}")
    return value == "True"


def _whole(key: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{key} must be a whole number, got {value!r}")
    return int(value)


def _split_size(key: str, value: str) -> int:
    mib = _whole(key, value)
    if mib < 20:
        raise ValueError(f"{key} too small, must be >= 20, got {mib}")
    return mib << 20


def _threshold(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise ValueError(f"{key} is invalid, set it in (0.0, 1.0), got {value!r}")
    return number


def _power(key: str, what: str, value: str) -> int:
    number = _whole(key, value)
    if number < 1 or number & (number - 1):
        raise ValueError(f"{key}: {what} must be powers of 2, got {value}")
    return number


def _divisions(key: str, value: str) -> list[int]:
    """Numbers for each power of two of MiB: one for all, or ``[size:number,...]``."""
    if not value.startswith("["):
        return [_power(key, "divisions", value)] * _STEPS
    found: list[int] = []
    for entry in value[1:-1].split(","):
        size, colon, number = (part.strip() for part in entry.partition(":"))
        if not colon:
            raise ValueError(f"{key} must be a number or [size:number,...,>:number], got {value}")
        last = size == ">"
        end = _STEPS if last else _power(key, "sizes", size).bit_length() - 1
        if end > _STEPS or end < len(found) or (last and len(found) == _STEPS):
            raise ValueError(f"{key}: sizes must ascend up to {1 << (_STEPS - 1)}, got {value}")
        found += [_power(key, "divisions", number)] * (end - len(found))
    return found + found[-1:] * (_STEPS - len(found))


def _backend(key: str, value: str) -> None:
    if value != "native":
        raise ValueError(f"{key} must be native, got {value!r}: taeda has no other")


_KEYS: dict[str, tuple[str | None, Callable[[str, str], Any]]] = {
    "backend": (None, _backend),
    "expandable_segments": ("expandable_segments", _bool),
    "garbage_collection_threshold": ("garbage_collection_threshold", _threshold),
    "max_split_size_mb": ("max_split_size", _split_size),
    "roundup_power2_divisions": ("roundup_power2_divisions", _divisions),
}


def _parse(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    while at < len(text.rstrip()):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise ValueError(f"allocator settings must be key:value,..., got {text[at:]!r}")
        at = entry.end()
        key, value = entry.groups()
        if key not in _KEYS:
            raise ValueError(
                f"unrecognized key {key!r} in allocator settings; there are {sorted(_KEYS)}"
            )
        name, read = _KEYS[key]
        chosen = read(key, value)
        if name is not None:
            found[name] = chosen
    return found


def change(text: str) -> None:
    """Choose settings, such as ``"expandable_segments:True,max_split_size_mb:128"``.

    Those that are not named stay as they are, and memory that the allocators have already.

    Raises:
        ValueError: a key is none of the settings, or its value is out of range.
    """
    for name, value in _parse(text).items():
        setattr(_current, name, value)
    _current.text = text
    if _told is not None:
        tell(_told)


def from_environment() -> None:
    """Choose what the environment says."""
    text = next((os.environ[name] for name in _VARIABLES if name in os.environ), "")
    if text:
        try:
            change(text)
        except ValueError as error:
            names = " or ".join(_VARIABLES)
            raise ValueError(f"{names} in the environment: {error}") from None


def tell(function: Callable[..., Any]) -> None:
    """Tell the library, by its function, now and whenever something changes."""
    global _told
    _told = function
    most = _current.max_split_size
    function(
        int(_current.expandable_segments),
        ctypes.c_uint64(most if most >= 0 else 2**64 - 1),
        ctypes.c_double(_current.garbage_collection_threshold),
        (ctypes.c_uint32 * _STEPS)(*_current.roundup_power2_divisions),
    )
