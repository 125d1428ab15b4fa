"""CUDA devices: there are none in this build, and everything here says so.

Queries answer what is so on a machine without a GPU, and what concerns all devices (seeding, emptying
caches) has nothing to do. What needs a device raises AssertionError, as PyTorch does without CUDA.

>>> import taeda
>>> taeda.cuda.is_available(), taeda.cuda.device_count()
(False, 0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda._absent import classes, functions
from taeda._errors import AcceleratorError, OutOfMemoryError
from taeda._tensor.types import cuda_types

from .streams import CUDAGraph, Event, Stream, StreamContext, graph, stream

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from taeda import Tensor

_TYPES: dict[str, Any] = cuda_types()
globals().update(_TYPES)
_WHY = "taeda is not compiled with CUDA; there is no device"
_REST: dict[str, Any] = functions(
    "cuda",
    "get_gencode_flags host_memory_stats host_memory_stats_as_nested_dict "
    "is_current_stream_capturing is_tf32_supported max_memory_cached memory_cached memory_snapshot "
    "memory_stats memory_stats_as_nested_dict ipc_collect reset_accumulated_host_memory_stats "
    "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
    "reset_peak_host_memory_stats",
    "caching_allocator_alloc caching_allocator_delete can_device_access_peer clock_rate cudart "
    "current_blas_handle current_solver_handle device_memory_used get_allocator_backend "
    "get_per_process_memory_fraction get_stream_from_external get_sync_debug_mode "
    "graph_pool_handle list_gpu_processes make_graphed_callables memory_summary memory_usage "
    "power_draw set_per_process_memory_fraction set_stream set_sync_debug_mode temperature "
    "utilization",
    AssertionError,
    _WHY,
)
_REST |= classes("cuda", "ExternalStream MemPool", _WHY)
globals().update(_REST)

has_half = True  # whether there are tensors of float16
has_magma = False

__all__ = [
    *_REST,
    *_TYPES,
    "AcceleratorError",
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
]


def __getattr__(name: str) -> Any:
    if name in ("amp", "nvtx", "profiler"):
        return importlib.import_module(f"taeda.cuda.{name}")
    if name.endswith("Storage"):
        from taeda.storage import cuda_types

        globals().update(cuda_types())
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module 'taeda.cuda' has no attribute {name!r}")


default_generators: tuple[Any, ...] = ()  # one for each device
_initialized = False


def _no_cuda(what: str) -> NoReturn:
    raise AssertionError(f"cuda.{what}: taeda is not compiled with CUDA; there is no device")


# ---- queries that work without a device ----------------------------------------------------------------


def is_available() -> bool:
    """Whether a CUDA device can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether CUDA has been initialised: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16, or emulates it: there is none."""
    if not isinstance(including_emulation, bool):
        raise TypeError("cuda.is_bf16_supported: including_emulation must be a bool")
    return False


def device_count() -> int:
    """The number of CUDA devices: 0."""
    return 0


def get_arch_list() -> list[str]:
    """The GPU architectures that this build has kernels for: none."""
    return []


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


# ---- no-ops without a device ----------------------------------------------------


def empty_cache() -> None:
    """Give cached memory of all devices back: there is none."""


def manual_seed(seed: int) -> None:
    """Seed the current device's generator, where there is one; the CPU's is not touched."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """No-op: this build has no CUDA."""
    int(seed)


def seed() -> None:
    """Seed the current device's generator at random, where there is one."""


def seed_all() -> None:
    """No-op: this build has no CUDA."""


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators: none."""
    return []


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the states of all devices' generators; AssertionError where any is given."""
    if list(new_states):
        _no_cuda("set_rng_state_all")


class device:
    """The device that a ``with`` block works on; None or a negative index leave it as it is."""

    _kind = "cuda"

    def __init__(self, device: Any) -> None:
        from taeda import device as Device

        self.idx = -1
        if isinstance(device, (str, Device)):
            given = Device(device)
            if given.type != self._kind:
                raise ValueError(
                    f"{self._kind}.device: expected a {self._kind} device, got {given}"
                )
            self.idx = -1 if given.index is None else given.index
        elif device is not None:
            self.idx = int(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError(
                f"{self._kind}.device({self.idx}): there is no device: this build has no {self._kind}"
            )

    def __exit__(self, *exc: object) -> None:
        return None


class device_of(device):
    """The device of a tensor, for a ``with`` block; no change for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


# ---- functions that need a device ------------------------------------------------------------------------


def init() -> None:
    """Initialise CUDA; AssertionError, as there is none."""
    _no_cuda("init")


def current_device() -> int:
    """The index of the current device; AssertionError, as there is none."""
    _no_cuda("current_device")


def set_device(device: Any) -> None:
    """Set the current device; AssertionError unless the index is negative, which changes nothing."""
    _check_index("set_device", device)
    if not isinstance(device, int) or device >= 0:
        _no_cuda("set_device")


def synchronize(device: Any = None) -> None:
    """Wait for a device; AssertionError, as there is none."""
    _no_cuda(f"synchronize({device!r})")


def current_stream(device: Any = None) -> Any:
    """The current stream of a device; AssertionError, as there is none."""
    _no_cuda(f"current_stream({device!r})")


def default_stream(device: Any = None) -> Any:
    """The default stream of a device; AssertionError, as there is none."""
    _no_cuda(f"default_stream({device!r})")


def get_device_name(device: Any = None) -> str:
    """The name of a device; AssertionError, as there is none."""
    _no_cuda(f"get_device_name({device!r})")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device; AssertionError, as there is none."""
    _no_cuda(f"get_device_capability({device!r})")


def get_device_properties(device: Any = None) -> Any:
    """The properties of a device; AssertionError, as there is none."""
    _no_cuda(f"get_device_properties({device!r})")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory of a device; AssertionError, as there is none."""
    _no_cuda(f"mem_get_info({device!r})")


def initial_seed() -> int:
    """The seed of the current device's generator; AssertionError, as there is none."""
    _no_cuda("initial_seed")


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's generator; AssertionError, as there is none."""
    _no_cuda(f"get_rng_state({device!r})")


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of a device's generator; AssertionError, as there is none."""
    _no_cuda(f"set_rng_state({new_state!r}, {device!r})")
