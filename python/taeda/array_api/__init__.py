"""The array API standard (2024.12), for code that is written for any array library.

The functions have the standard's names, arguments and results. Where these differ from PyTorch's,
the package's top level keeps PyTorch's: there, ``taeda.equal`` compares whole tensors and ``dim``
is what the standard calls ``axis``. ``x.__array_namespace__()`` returns this module, and so
``array_api_compat`` and the libraries that use it find it.

Two things are those of PyTorch's tensors everywhere: ``x.size`` is a method (``x.numel()`` is the
number of elements), and in the operators, such as ``x + y``, a tensor without dimensions does not
widen the other's dtype within its kind. The functions here follow the standard. There are no
uint16, uint32 and uint64.

>>> def spread(x):
...     xp = x.__array_namespace__()
...     return xp.max(x, axis=0) - xp.min(x, axis=0)
>>> spread(taeda.tensor([[1, 5], [4, 2]]))
tensor([3, 3])
"""

from __future__ import annotations

from math import e, inf, nan, pi

from taeda import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from taeda.array_api import (
    _creation,
    _dtypes,
    _elementwise,
    _manipulation,
    _statistics,
    fft,
    linalg,
)
from taeda.array_api._creation import *
from taeda.array_api._dtypes import *
from taeda.array_api._elementwise import *
from taeda.array_api._info import __array_namespace_info__
from taeda.array_api._manipulation import *
from taeda.array_api._statistics import *
from taeda.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [
    *_creation.__all__,
    *_dtypes.__all__,
    *_elementwise.__all__,
    *_manipulation.__all__,
    *_statistics.__all__,
    "__array_api_version__",
    "__array_namespace_info__",
    "bool",
    "complex64",
    "complex128",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "matmul",
    "matrix_transpose",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "uint8",
    "vecdot",
]
