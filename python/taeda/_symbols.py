"""Types of PyTorch's for tracing, compiling or GPUs, of which taeda has few or no instances."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "Event",
    "Stream",
    "SymBool",
    "SymFloat",
    "SymInt",
    "TensorType",
    "bit",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bits16",
    "complex32",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "jagged",
    "qint8",
    "qint32",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
]


class _Symbol:
    def __init__(self, node: Any) -> None:
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"{name}: nothing is traced, so that there are no symbolic numbers")


class SymInt(_Symbol):
    """A symbolic int: of these there are only the sizes of ragged dimensions (`taeda.nested`)."""


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


class _DtypeName:
    """A dtype of PyTorch's that no tensor here has: it compares with dtypes."""

    def __init__(self, name: str, itemsize: int = 1, kind: str = "integer") -> None:
        self._name = name
        self.itemsize = itemsize
        self.is_complex = kind == "complex"
        self.is_floating_point = kind == "floating"

    @property
    def is_signed(self) -> bool:
        """Whether there are numbers below 0: no answer for bits, and for quantised integers."""
        if self._name.startswith(("q", "bits")):
            raise RuntimeError(f"is_signed: {self} is neither signed nor unsigned")
        return not self._name.startswith("uint")

    def __repr__(self) -> str:
        return f"taeda.{self._name}"


complex32 = _DtypeName("complex32", 4, "complex")
float4_e2m1fn_x2 = _DtypeName("float4_e2m1fn_x2", 1, "floating")
quint8, qint8, qint32 = _DtypeName("quint8"), _DtypeName("qint8"), _DtypeName("qint32", 4)
quint4x2, quint2x4 = _DtypeName("quint4x2"), _DtypeName("quint2x4")
bits1x8, bits2x4, bits4x2 = _DtypeName("bits1x8"), _DtypeName("bits2x4"), _DtypeName("bits4x2")
bits8, bits16 = _DtypeName("bits8"), _DtypeName("bits16", 2)
int1, int2, int3, int4 = (_DtypeName(f"int{n}") for n in range(1, 5))
int5, int6, int7 = (_DtypeName(f"int{n}") for n in range(5, 8))
uint1, uint2, uint3, uint4 = (_DtypeName(f"uint{n}") for n in range(1, 5))
uint5, uint6, uint7 = (_DtypeName(f"uint{n}") for n in range(5, 8))
bit = uint1


class _LayoutName:
    """A layout that tensors of the C++ core do not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"taeda.{self._name}"

    def __reduce__(self) -> str:
        return self._name


jagged = _LayoutName("jagged")
