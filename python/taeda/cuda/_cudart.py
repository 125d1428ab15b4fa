"""What :func:`taeda.cuda.cudart` gives: functions of CUDA's runtime library that programs call.

They return a ``cudaError`` instead of raising one; ``taeda.cuda.check_error`` raises it.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["CudaError", "check_error", "cudaStatus", "cudart"]


class cudaError(int):
    """What a function of the runtime library returns; ``cudaError.success`` is 0."""

    success: ClassVar[cudaError]

    @property
    def value(self) -> int:
        """The number."""
        return int(self)

    def __repr__(self) -> str:
        return f"<cudaError: {int(self)}>"


cudaError.success = cudaError(0)


class cudaStatus:
    """Two of the numbers that the runtime library returns."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """An error of the runtime library, with its text and its number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_library().cudaGetErrorString(cudaError(code))} ({int(code)})")


def _library() -> Any:
    """What ``cuda.cudart`` is: it says so where there is no device."""
    import taeda

    return taeda.cuda.cudart()


def check_error(res: int) -> None:
    """Raise ``CudaError`` unless a function of ``cudart()`` has succeeded.

    Args:
        res: what the function has returned.
    """
    if res != _library().cudaError.success:
        raise CudaError(res)


def cudart() -> ModuleType:
    """The functions of the runtime library, such as ``cudart().cudaHostRegister``.

    There are ``cudaGetErrorString``, ``cudaHostRegister``, ``cudaHostUnregister``,
    ``cudaMemGetInfo``, ``cudaProfilerStart``, ``cudaProfilerStop``, ``cudaStreamCreate`` and
    ``cudaStreamDestroy``, with numbers for addresses.
    """
    from taeda.cuda import _runtime

    _runtime.current()
    return sys.modules[__name__]


def _result(name: str, *args: Any) -> cudaError:
    """What the driver has returned to ``taeda_cuda_<name>``."""
    from taeda.cuda import _runtime

    result = ctypes.c_int()
    _runtime.call(name, _runtime.current(), *args, ctypes.byref(result))
    return cudaError(result.value)


def cudaGetErrorString(error: int) -> str:
    """What an error means."""
    from taeda.cuda import _runtime

    text = ctypes.create_string_buffer(256)
    _runtime.call("error_text", int(error), text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def cudaHostRegister(ptr: int, size: int, flags: int) -> cudaError:
    """Pin memory of the host that somebody else has made: its address and bytes."""
    return _result(
        "register_host", ctypes.c_void_p(ptr), ctypes.c_size_t(size), ctypes.c_uint(flags)
    )


def cudaHostUnregister(ptr: int) -> cudaError:
    """Unpin memory that was pinned by :func:`cudaHostRegister`."""
    return _result("unregister_host", ctypes.c_void_p(ptr))


def cudaMemGetInfo(device: int) -> tuple[int, int]:
    """Bytes of a device's memory that are free, and all."""
    from taeda.cuda import _memory

    return _memory.mem_get_info(device)


def cudaProfilerStart() -> cudaError:
    """Let NVIDIA's profilers record."""
    return _result("profile_result", 1)


def cudaProfilerStop() -> cudaError:
    """Let NVIDIA's profilers record no more."""
    return _result("profile_result", 0)


def cudaStreamCreate(ptr: int) -> cudaError:
    """Make a stream on the current device, and write its address to memory of the host.

    Args:
        ptr: the address of a ``cudaStream_t``.
    """
    return _result("create_stream", ctypes.c_void_p(ptr))


def cudaStreamDestroy(ptr: int) -> cudaError:
    """Destroy a stream, by its address."""
    return _result("remove_stream", ctypes.c_void_p(ptr))
