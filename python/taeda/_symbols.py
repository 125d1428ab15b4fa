"""Types of PyTorch's for tracing, compiling or GPUs, of which taeda has few or no instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import taeda
from taeda._public_names import DTYPE_NAMES

__all__ = ["Event", "Stream", "SymBool", "SymFloat", "SymInt", "TensorType", "jagged", *DTYPE_NAMES]


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
    """A dtype of PyTorch's that no tensor here has: it compares with dtypes, and counts as one."""

    is_complex = False

    def __init__(self, name: str, itemsize: int, is_floating_point: bool) -> None:
        self._name = name
        self.itemsize = itemsize
        self.is_floating_point = is_floating_point

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return taeda.dtype  # isinstance takes this

    def to_real(self) -> Any:
        """Itself: none of them is complex."""
        return self

    def __reduce__(self) -> str:
        return self._name

    @property
    def is_signed(self) -> bool:
        """Whether there are numbers below 0: no answer for bits, and for quantised integers."""
        if self._name.startswith(("q", "bits")):
            raise RuntimeError(f"is_signed: {self} is neither signed nor unsigned")
        return not self._name.startswith("uint")

    def __repr__(self) -> str:
        return f"taeda.{self._name}"


def _dtype(name: str) -> _DtypeName:
    size = {"qint32": 4, "bits16": 2}.get(name, 1)
    return _DtypeName("uint1" if name == "bit" else name, size, name.startswith("float"))


if TYPE_CHECKING:

    def __getattr__(name: str) -> _DtypeName: ...


globals().update({name: _dtype(name) for name in DTYPE_NAMES})
globals()["bit"] = globals()["uint1"]


class _LayoutName:
    """A layout that tensors of the C++ core do not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"taeda.{self._name}"

    def __reduce__(self) -> str:
        return self._name


jagged = _LayoutName("jagged")
