"""Intel's GPUs: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.xpu.is_available(), taeda.xpu.device_count()
(False, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._absent import classes, functions
from taeda.cuda import device as _cuda_device
from taeda.cuda.streams import StreamContext as _CudaStreamContext

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

_WHY = "taeda has not been built with XPU"
_REST: dict[str, Any] = functions(
    "xpu",
    "get_arch_list get_gencode_flags get_rng_state_all is_current_stream_capturing "
    "is_tf32_supported max_memory_allocated max_memory_reserved memory_snapshot memory_stats "
    "memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats",
    "can_device_access_peer clock_rate current_stream device_memory_used get_device_capability "
    "get_device_properties get_per_process_memory_fraction get_rng_state "
    "get_stream_from_external graph_pool_handle init initial_seed make_graphed_callables "
    "mem_get_info memory_usage power_draw set_per_process_memory_fraction set_rng_state "
    "set_stream temperature utilization",
    AssertionError,
    _WHY,
)
_REST |= classes("xpu", "Event MemPool Stream XPUGraph graph", _WHY)
globals().update(_REST)

default_generators: tuple[Any, ...] = ()  # one for each device

__all__ = [
    *_REST,
    "StreamContext",
    "current_device",
    "default_generators",
    "device",
    "device_of",
    "set_rng_state_all",
    "stream",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "memory_reserved",
    "seed",
    "seed_all",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one computes in bfloat16, natively or not: no."""
    if not isinstance(including_emulation, bool):
        raise TypeError("xpu.is_bf16_supported: including_emulation must be a bool")
    return False


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current one; there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """No-op: this build has no XPU."""
    int(seed)


def seed() -> None:
    """Seed the current one from the system's entropy; there is none."""


def seed_all() -> None:
    """Seed all of them from the system's entropy; there are none."""


def empty_cache() -> None:
    """Give the unused memory of all of them back; there are none."""


def memory_allocated(device: Any = None) -> int:
    """The bytes in tensors on a device: 0, since this build has no XPU."""
    return _bytes(device)


def memory_reserved(device: Any = None) -> int:
    """The bytes reserved on a device: 0, since this build has no XPU."""
    return _bytes(device)


def _bytes(device: Any) -> int:
    if device is not None:
        _none(f"memory of {device!r}")
    return 0


def _none(what: str) -> NoReturn:
    raise AssertionError(f"xpu: {what}: taeda has not been built with XPU")


def current_device() -> int:
    """The current device's index; AssertionError, as there is none."""
    _none("current_device()")


def set_device(device: Any) -> None:
    """Make a device the current one; AssertionError, as there is none."""
    _none(f"set_device({device!r})")


def get_device_name(device: Any = None) -> str:
    """A device's name; AssertionError, as there is none."""
    _none(f"get_device_name({device!r})")


def synchronize(device: Any = None) -> None:
    """Wait for a device; AssertionError, as there is none."""
    _none(f"synchronize({device!r})")


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all devices' generators; AssertionError where any is given."""
    if list(new_states):
        _none("set_rng_state_all()")


class device(_cuda_device):
    """The device that a ``with`` block works on; None or a negative index leave it as it is."""

    _kind = "xpu"


class device_of(device):
    """The device of a tensor, for a ``with`` block; no change for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_xpu else -1)


class StreamContext(_CudaStreamContext):
    """Inside ``with StreamContext(stream):`` work goes to a stream; None changes nothing."""


def stream(stream: Any) -> StreamContext:
    """A context that sends work to a stream; with None it does nothing."""
    return StreamContext(stream)
