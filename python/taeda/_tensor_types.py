"""The old names of tensor types: ``FloatTensor(2, 3)``, ``isinstance(x, LongTensor)``."""

from __future__ import annotations

from typing import Any

from taeda import _C

_NAMES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "BoolTensor": _C.bool,
    "ComplexFloatTensor": _C.complex64,
    "ComplexDoubleTensor": _C.complex128,
}
_STRINGS = {dtype: f"taeda.{name}" for name, dtype in _NAMES.items()}


class tensortype(type):
    """The class of FloatTensor and its like: calling one makes a Tensor of its dtype."""

    dtype: Any
    device = _C.device("cpu")
    layout = _C.strided
    is_cuda = False
    is_sparse = False

    def __call__(cls, *args: Any) -> Any:
        return _C._legacy_tensor(cls.dtype, *args)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.Tensor) and instance.dtype == cls.dtype

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls

    def __repr__(cls) -> str:
        return f"<class 'taeda.{cls.__name__}'>"


def _make(name: str, dtype: Any) -> Any:
    doc = f"Tensors of dtype {dtype}, made by sizes (``{name}(2, 3)``) or by values."
    return tensortype(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "taeda"})


# The types of complex tensors are names alone, as in PyTorch.
TYPES: dict[str, Any] = {
    name: _make(name, dtype) for name, dtype in _NAMES.items() if not name.startswith("Complex")
}


class cudatensortype(tensortype):
    """The class of ``cuda.FloatTensor`` and its like, of which this build has no tensors."""

    device = _C.device("cuda")
    is_cuda = True

    def __call__(cls, *args: Any) -> Any:
        raise TypeError(
            f"type taeda.cuda.{cls.__name__} not available: taeda is not compiled with CUDA"
        )

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) and bool(instance.is_cuda)

    def __repr__(cls) -> str:
        return f"<class 'taeda.cuda.{cls.__name__}'>"


def cuda_types() -> dict[str, Any]:
    """The types of tensors on CUDA devices, by name."""
    return {
        name: cudatensortype(
            name,
            (),
            {
                "dtype": dtype,
                "__doc__": f"CUDA tensors of dtype {dtype}.",
                "__module__": "taeda.cuda",
            },
        )
        for name, dtype in _NAMES.items()
        if not name.startswith("Complex")
    }


def type_string(dtype: Any) -> str:
    """Return the name that ``Tensor.type()`` gives a dtype, such as ``taeda.FloatTensor``."""
    return _STRINGS[dtype]


def as_dtype(kind: Any) -> Any:
    """Return the dtype that a dtype, a tensor type or the name of one stands for."""
    if isinstance(kind, _C.dtype):
        return kind
    if isinstance(kind, cudatensortype) or (isinstance(kind, str) and ".cuda." in kind):
        raise RuntimeError(f"type(): {kind!r} is for CUDA tensors; taeda has no CUDA support")
    if isinstance(kind, tensortype):
        return kind.dtype
    if isinstance(kind, str):
        name = kind.rpartition(".")[2]
        if name == "Tensor":
            return _C.get_default_dtype()
        if name in _NAMES:
            return _NAMES[name]
        raise ValueError(f"invalid type: '{kind}'")
    if kind is _C.Tensor:
        return _C.get_default_dtype()
    raise TypeError(f"type(): argument 'dtype' must be a dtype, a type or str, not {kind!r}")
