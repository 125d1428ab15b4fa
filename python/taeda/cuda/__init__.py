"""CUDA devices. Without the package ``taeda-cuda`` there are none, and everything here says so.

Queries answer then what is so on a machine without a GPU, and what concerns all devices (seeding,
emptying caches) has nothing to do. What needs a device raises AssertionError, as PyTorch does without
CUDA. With the package, ``docs/cuda.md`` says what there is.

>>> import taeda
>>> taeda.cuda.is_available(), taeda.cuda.device_count()
(False, 0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda import _absent
from taeda._errors import AcceleratorError, OutOfMemoryError
from taeda._tensor.types import cuda_types

from . import _library, _rest
from ._cudart import CudaError, check_error, cudaStatus
from ._rest import *
from .streams import CUDAGraph, Event, Stream, StreamContext, graph, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from taeda import Tensor

_TYPES: dict[str, Any] = cuda_types()
globals().update(_TYPES)

has_half = True  # whether there are tensors of float16
has_magma = False

__all__ = [
    *_rest._REST,
    *_TYPES,
    "AcceleratorError",
    "CUDAGraph",
    "CudaError",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "check_error",
    "cudaStatus",
    "default_generators",
    "device",
    "device_of",
    "graph",
    "has_half",
    "has_magma",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name in ("amp", "comm", "graphs", "memory", "nvtx", "profiler", "random"):
        return importlib.import_module(f"taeda.cuda.{name}")
    if name.endswith("Storage"):
        from taeda.storage import cuda_types

        globals().update(cuda_types())
        if name in globals():
            return globals()[name]
    if name == "default_generators":  # asking for devices loads the library
        return importlib.import_module("taeda.cuda._random").generators()
    raise AttributeError(f"module 'taeda.cuda' has no attribute {name!r}")


default_generators: tuple[Any, ...] = ()  # one for each device
_initialized = False


def _lazy_call(
    function: Callable[[], object], *, seed_all: bool = False, seed: bool = False
) -> None:
    """Call a function as soon as there are devices: now, or where there are none, never.

    Args:
        function: what to call.
        seed_all, seed: whether it seeds all devices or the current one; PyTorch calls those first.
    """
    import taeda

    if taeda.cuda.is_initialized():
        function()


def _lazy_init() -> None:
    """Make sure that there is a device; see ``init``."""
    import taeda

    taeda.cuda.init()


def _no_cuda(what: str) -> NoReturn:
    raise AssertionError(f"cuda.{what}: {_absent.DEVICES['cuda'].why}")


def _check_index(what: str, device: Any) -> None:
    """Raise for a device that is none of CUDA's; any of CUDA's is one of none."""
    from taeda import device as Device

    if isinstance(device, (str, Device)) and Device(device).type != "cuda":
        raise ValueError(f"cuda.{what}: expected a cuda device, got {device}")


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take on a device: 0."""
    _check_index("memory_allocated", device)
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have taken on a device: 0."""
    _check_index("max_memory_allocated", device)
    return 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """No-op: this build has no CUDA."""
    _check_index("reset_peak_memory_stats", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds on a device: 0."""
    _check_index("memory_reserved", device)
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held on a device: 0."""
    _check_index("max_memory_reserved", device)
    return 0


class device(_absent.Device):
    """The device that a ``with`` block works on; None or a negative index leave it as it is."""

    _kind = "cuda"


class device_of(_absent.DeviceOf, device):
    """The device of a tensor, for a ``with`` block; no change for one on the CPU."""


def set_device(device: Any) -> None:
    """Set the current device; AssertionError unless the index is negative, which changes nothing."""
    _check_index("set_device", device)
    if not isinstance(device, int) or device >= 0:
        _no_cuda("set_device")


if _library.path() is not None:
    from . import _present

    globals().update(_present.members())
    _present.fill_streams()
    for _name in _present.missing(_rest._REST):
        del globals()[_name]
    del default_generators
    __all__ = [name for name in __all__ if name in globals()]
