"""What NVIDIA's management library measures of devices, by the package ``nvidia-ml-py``."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from taeda.cuda import _runtime

__all__ = [
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
]


@functools.cache
def _library() -> Any:
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return nvml


def _opened(device: Any, function: str) -> tuple[Any, Any]:
    """The package, and its handle of a device."""
    index = _runtime.index_of(device, function)
    try:
        nvml = _library()
    except ImportError:
        raise ModuleNotFoundError(
            f"cuda.{function}: the package nvidia-ml-py is needed: pip install nvidia-ml-py"
        ) from None
    except Exception as error:  # of the package: there is no driver
        raise RuntimeError(f"cuda.{function}: {error}") from None
    return nvml, _handle(nvml, index)


def _handle(nvml: Any, index: int) -> Any:
    """NVML counts all devices of the machine, of which some may be hidden from CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not visible:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    name = visible.split(",")[index].strip()
    if name.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name)


def clock_rate(device: Any = None) -> int:
    """The clock rate of a device's multiprocessors, in MHz."""
    nvml, handle = _opened(device, "clock_rate")
    return int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))


def device_memory_used(device: Any = None) -> int:
    """Bytes of a device's memory that are in use, by all processes."""
    nvml, handle = _opened(device, "device_memory_used")
    return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)


def memory_usage(device: Any = None) -> int:
    """The share of the last moments in which memory was read or written, in percent."""
    nvml, handle = _opened(device, "memory_usage")
    return int(nvml.nvmlDeviceGetUtilizationRates(handle).memory)


def power_draw(device: Any = None) -> int:
    """The power that a device takes, in mW."""
    nvml, handle = _opened(device, "power_draw")
    return int(nvml.nvmlDeviceGetPowerUsage(handle))


def temperature(device: Any = None) -> int:
    """A device's temperature, in degrees Celsius."""
    nvml, handle = _opened(device, "temperature")
    return int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))


def utilization(device: Any = None) -> int:
    """The share of the last moments in which a kernel ran, in percent."""
    nvml, handle = _opened(device, "utilization")
    return int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a device, and how much of its memory each takes, as text."""
    nvml, handle = _opened(device, "list_gpu_processes")
    lines = [f"GPU:{_runtime.index_of(device, 'list_gpu_processes')}"]
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    if not processes:
        lines.append("no processes are running")
    for process in processes:
        used = (process.usedGpuMemory or 0) / 2**20  # None where the driver does not tell
        lines.append(f"process {process.pid:>10d} uses {used:>12.3f} MB GPU memory")
    return "\n".join(lines)
