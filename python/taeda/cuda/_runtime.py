"""Calls of the CUDA library's own functions (csrc/kernels/cuda/runtime/api.cpp)."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from taeda._errors import OutOfMemoryError
from taeda.cuda import _library

__all__ = ["Properties", "call", "compiled_for", "count", "cudnn_version", "index_of", "why_not"]

_ERRORS: dict[int, type[Exception]] = {1: RuntimeError, 2: IndexError, 3: OutOfMemoryError}


class Properties(ctypes.Structure):
    """What a device is like, under the names of ``get_device_properties``."""

    _fields_ = [
        ("_name", ctypes.c_char * 256),
        ("total_memory", ctypes.c_uint64),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("multi_processor_count", ctypes.c_int),
        ("max_threads_per_multi_processor", ctypes.c_int),
        ("warp_size", ctypes.c_int),
        ("L2_cache_size", ctypes.c_int),
        ("shared_memory_per_block_optin", ctypes.c_int),
        ("is_integrated", ctypes.c_int),
        ("is_multi_gpu_board", ctypes.c_int),
    ]

    @property
    def name(self) -> str:
        """The device's name."""
        return self._name.decode()

    def __repr__(self) -> str:
        mib = self.total_memory // 2**20
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={mib}MB, multi_processor_count={self.multi_processor_count})"
        )


@functools.cache
def _handle() -> ctypes.CDLL:
    _library.load()
    path = _library.path()
    assert path is not None, "used only where the library is installed"
    found = ctypes.CDLL(path)
    found.taeda_cuda_error.restype = ctypes.c_char_p
    found.taeda_cuda_compiled_for.restype = ctypes.c_char_p
    found.taeda_cuda_why_not.restype = ctypes.c_size_t
    found.taeda_cuda_cudnn_version.restype = ctypes.c_size_t
    return found


def why_not() -> str:
    """Why there is no device; empty where there are some."""
    text = ctypes.create_string_buffer(1024)
    _handle().taeda_cuda_why_not(text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def count() -> int:
    """How many devices there are."""
    return int(_handle().taeda_cuda_device_count())


def cudnn_version() -> int:
    """The version of cuDNN, such as 91002; 0 where it is not installed."""
    return int(_handle().taeda_cuda_cudnn_version())


def compiled_for() -> list[str]:
    """The architectures that the library is compiled for."""
    return str(_handle().taeda_cuda_compiled_for().decode()).split()


def call(name: str, *args: Any) -> None:
    """Call ``taeda_cuda_<name>``; ctypes' values go as they are, integers as C's int.

    Raises:
        RuntimeError, IndexError, OutOfMemoryError: what the library says.
    """
    status = getattr(_handle(), f"taeda_cuda_{name}")(*args)
    if status:
        raise _ERRORS[status](_handle().taeda_cuda_error().decode())


def number(name: str) -> int:
    """Call ``taeda_cuda_<name>``, which returns a number."""
    return int(getattr(_handle(), f"taeda_cuda_{name}")())


def tell(name: str, *args: Any) -> None:
    """Call ``taeda_cuda_<name>``, which cannot fail."""
    getattr(_handle(), f"taeda_cuda_{name}")(*args)


def current() -> int:
    """The index of the current device. RuntimeError where there is none."""
    if why := why_not():
        raise RuntimeError(f"cuda: {why}")
    return int(_handle().taeda_cuda_current_device())


def index_of(device: Any, function: str) -> int:
    """The index that a device, its name, an index or None (the current device) means."""
    from taeda import device as Device

    if isinstance(device, bool) or not (device is None or isinstance(device, (int, str, Device))):
        raise TypeError(f"cuda.{function}: expected a device, its name or index, got {device!r}")
    if isinstance(device, (str, Device)):
        given = Device(device)
        if given.type != "cuda":
            raise ValueError(f"cuda.{function}: expected a cuda device, got {given}")
        device = given.index
    if device is None or device < 0:
        return current()
    return int(device)
