"""The allocators of CUDA devices, where the library is installed."""

from __future__ import annotations

import ctypes
import json
import warnings
from typing import TYPE_CHECKING, Any

from taeda.cuda import _runtime, _stacks, _streams
from taeda.cuda._devices import device_count, get_device_properties, is_available
from taeda.cuda._runtime import call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

_NUMBERS = [
    f"{what}.all.{which}"
    for what in ("allocated_bytes", "reserved_bytes", "requested_bytes", "allocation", "segment")
    for which in ("current", "peak", "allocated", "freed")
] + ["num_alloc_retries", "num_ooms"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a device's memory that are free, to the driver's knowledge, and all of them."""
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    index = _runtime.index_of(device, "mem_get_info")
    call("memory_info", index, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def memory_stats(device: Any = None) -> dict[str, int]:
    """Numbers of a device's allocator, such as ``"allocated_bytes.all.peak"``."""
    if not is_available():
        return {}
    numbers = (ctypes.c_int64 * len(_NUMBERS))()
    call("memory_stats", _runtime.index_of(device, "memory_stats"), numbers)
    return dict(zip(_NUMBERS, numbers, strict=True))


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take on a device."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have taken, since the last ``reset_peak_memory_stats``."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds on a device: in tensors, and cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held, since the last ``reset_peak_memory_stats``."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin anew from what there is now."""
    call("reset_memory_stats", _runtime.index_of(device, "reset_peak_memory_stats"), 1)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the totals begin anew from 0."""
    call("reset_memory_stats", _runtime.index_of(device, "reset_accumulated_memory_stats"), 0)


def empty_cache() -> None:
    """Give the cached memory of all devices back to the driver, after waiting for their work."""
    for index in range(device_count()):
        call("empty_cache", index)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Take no more than this share of a device's memory.

    Raises:
        ValueError: it is not within 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"cuda.set_per_process_memory_fraction: fraction must be in [0, 1], got {fraction}"
        )
    index = _runtime.index_of(device, "set_per_process_memory_fraction")
    total = get_device_properties(index).total_memory
    call("limit_memory", index, ctypes.c_uint64(int(fraction * total)))
    _fractions[index] = fraction


def json_of(function: str, index: int) -> list[dict[str, Any]]:
    """What a function of the library says of a device, as JSON."""
    length, room = ctypes.c_size_t(), 1 << 16
    while True:
        text = ctypes.create_string_buffer(room)
        call(function, index, text, ctypes.c_size_t(room), ctypes.byref(length))
        if length.value < room:
            return json.loads(text.value)
        room = length.value + 4096


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """The allocators' segments on all devices, each with its ``"blocks"``.

    Args:
        mempool_id: a pool's name, for its segments alone.
        include_traces: nothing is left out by False, as there are no traces here.
    """
    segments = [s for index in range(device_count()) for s in json_of("memory_snapshot", index)]
    for segment in segments:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
        segment["frames"] = []
        for block in segment["blocks"]:
            block["frames"] = _stacks.frames(block["frames"])
    return [s for s in segments if mempool_id in (None, s["segment_pool_id"])]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A device's numbers as a table.

    Args:
        device: a device, its name or index; None is the current one.
        abbreviated: whether the sums of what was taken and freed are left out.
    """
    stats = memory_stats(device)
    columns = {"now": "current", "peak": "peak", "taken": "allocated", "freed": "freed"}
    if abbreviated:
        columns = dict(list(columns.items())[:2])
    lines = [f"{'CUDA memory':24}" + "".join(f"{name:>16}" for name in columns)]
    for what in ("allocated_bytes", "reserved_bytes", "requested_bytes", "allocation", "segment"):
        values = [stats.get(f"{what}.all.{which}", 0) for which in columns.values()]
        lines.append(f"{what:24}" + "".join(f"{value:16}" for value in values))
    lines.append(
        f"retries: {stats.get('num_alloc_retries', 0)}, out of memory: {stats.get('num_ooms', 0)}"
    )
    return "\n".join(lines)


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The numbers of :func:`memory_stats` as a tree, by the parts of their names."""
    return as_tree(memory_stats(device))


def as_tree(numbers: Mapping[str, int]) -> dict[str, Any]:
    """Numbers as a tree, by the parts of their names."""
    tree: dict[str, Any] = {}
    for name, number in numbers.items():
        *path, last = name.split(".")
        at = tree
        for part in path:
            at = at.setdefault(part, {})
        at[last] = number
    return tree


def get_allocator_backend() -> str:
    """Who gives memory: ``"native"``, the caching allocator."""
    return "native"


_fractions: dict[int, float] = {}  # that set_per_process_memory_fraction has chosen


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The share of a device's memory that this process may take; 1 unless it was set."""
    return _fractions.get(_runtime.index_of(device, "get_per_process_memory_fraction"), 1.0)


_taken: dict[int, int] = {}  # devices of memory without a tensor


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Take memory for another library from the allocator.

    Args:
        size: in bytes.
        device: a device, its name or index; None is the current one.
        stream: the stream that uses it, or its address; None is the current one.

    Returns:
        Its address, for :func:`caching_allocator_delete`.

    Raises:
        TypeError: ``size`` is no int, or ``stream`` no stream.
        ValueError: ``size`` is negative.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(
            f"cuda.caching_allocator_alloc: size must be an int, got {type(size).__name__}"
        )
    if size < 0:
        raise ValueError(f"cuda.caching_allocator_alloc: size must not be negative, got {size}")
    index = _runtime.index_of(device, "caching_allocator_alloc")
    if stream is None:
        stream = _streams.current_stream(index)
    address = stream.cuda_stream if isinstance(stream, _streams.Stream) else stream
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(
            "cuda.caching_allocator_alloc: stream must be a Stream or an int, got "
            f"{type(stream).__name__}"
        )
    memory = ctypes.c_void_p()
    call(
        "allocate",
        index,
        ctypes.c_size_t(size),
        ctypes.c_void_p(address),
        ctypes.byref(memory),
    )
    assert memory.value is not None
    _taken[memory.value] = index
    return memory.value


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of :func:`caching_allocator_alloc` back.

    Raises:
        RuntimeError: it is no such memory.
    """
    if mem_ptr not in _taken:
        raise RuntimeError(f"cuda.caching_allocator_delete: there is no such memory at {mem_ptr!r}")
    call("free", _taken.pop(mem_ptr), ctypes.c_void_p(mem_ptr))


def _renamed(name: str, new: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """A function under the name that it had before."""

    def call_it(device: Any = None) -> Any:
        warnings.warn(
            f"cuda.{name} is deprecated; use cuda.{new.__name__}", FutureWarning, stacklevel=2
        )
        return new(device)

    call_it.__name__ = call_it.__qualname__ = name
    call_it.__doc__ = doc
    return call_it


_OLD = "under an old name, which warns."
memory_cached = _renamed("memory_cached", memory_reserved, f"``memory_reserved`` {_OLD}")
max_memory_cached = _renamed(
    "max_memory_cached", max_memory_reserved, f"``max_memory_reserved`` {_OLD}"
)
reset_max_memory_allocated = _renamed(
    "reset_max_memory_allocated", reset_peak_memory_stats, f"``reset_peak_memory_stats`` {_OLD}"
)
reset_max_memory_cached = _renamed(
    "reset_max_memory_cached", reset_peak_memory_stats, f"``reset_peak_memory_stats`` {_OLD}"
)
