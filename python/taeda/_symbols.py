"""Types that exist in PyTorch for tracing, compiling or GPUs. taeda has no instances of them."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "Event",
    "Stream",
    "SymBool",
    "SymFloat",
    "SymInt",
    "TensorType",
    "complex32",
]


class _Symbol:
    def __init__(self, node: Any) -> None:
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"{name}: nothing is traced, so that there are no symbolic numbers")


class SymInt(_Symbol):
    """A symbolic int, of which there are none: ``isinstance(x, SymInt)`` is always False."""


class SymFloat(_Symbol):
    """A symbolic float, of which there are none."""


class SymBool(_Symbol):
    """A symbolic bool, of which there are none."""


class TensorType:
    """TorchScript's description of a tensor, of which there is none."""

    def __init__(self, *args: Any) -> None:
        raise TypeError("TensorType: nothing is compiled, so that there are no types of values")


class Stream:
    """A queue of work for a device other than the CPU, of which there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Stream: there is no device with streams of work")


class Event:
    """A point in a stream of work, of which there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Event: there is no device with streams of work")


class _Complex32:
    """PyTorch's dtype of pairs of float16, which no tensor here has: it compares with dtypes."""

    itemsize = 4
    is_complex = True
    is_floating_point = False
    is_signed = True

    def __repr__(self) -> str:
        return "taeda.complex32"


complex32 = _Complex32()
