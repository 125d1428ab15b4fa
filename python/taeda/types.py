"""Names for what functions take, to annotate with.

>>> import taeda
>>> def move(x: taeda.Tensor, device: taeda.types.Device) -> taeda.Tensor:
...     return x.to(device)
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from taeda._C import Size, Tensor, device, dtype, layout
from taeda._symbols import SymBool, SymFloat, SymInt
from taeda.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = UntypedStorage | TypedStorage

PySymType: TypeAlias = SymInt | SymFloat | SymBool
IntLikeType: TypeAlias = builtins.int | SymInt
FloatLikeType: TypeAlias = builtins.float | SymFloat
BoolLikeType: TypeAlias = builtins.bool | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)

_Number = (builtins.int, builtins.float, builtins.bool)
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_device = device
_dtype = dtype
_layout = layout
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_str = builtins.str
_bytes = builtins.bytes
