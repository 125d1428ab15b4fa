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
# Storage-only dtypes have names, but no types.
_STRINGS |= {
    _C.complex32: "taeda.ComplexHalfTensor",
    _C.uint16: "taeda.UInt16Tensor",
    _C.uint32: "taeda.UInt32Tensor",
    _C.uint64: "taeda.UInt64Tensor",
    _C.float8_e4m3fn: "taeda.Float8_e4m3fnTensor",
    _C.float8_e4m3fnuz: "taeda.Float8_e4m3fnuzTensor",
    _C.float8_e5m2: "taeda.Float8_e5m2Tensor",
    _C.float8_e5m2fnuz: "taeda.Float8_e5m2fnuzTensor",
    _C.float8_e8m0fnu: "taeda.Float8_e8m0fnuTensor",
}


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
        return (
            isinstance(instance, _C.Tensor)
            and instance.dtype == cls.dtype
            and instance.layout == cls.layout
            and instance.is_cuda == cls.is_cuda
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls

    def __repr__(cls) -> str:
        return f"<class 'taeda.{cls.__name__}'>"


def _make(name: str, dtype: Any) -> Any:
    doc = f"Tensors of dtype {dtype}, made by sizes (``{name}(2, 3)``) or by values."
    return tensortype(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "taeda"})


# The types of complex tensors are only names, as in PyTorch.
TYPES: dict[str, Any] = {
    name: _make(name, dtype) for name, dtype in _NAMES.items() if not name.startswith("Complex")
}


class cudatensortype(tensortype):
    """The class of ``cuda.FloatTensor`` and its like: calling one makes a Tensor on a device."""

    device = _C.device("cuda")
    is_cuda = True

    def __call__(cls, *args: Any) -> Any:
        import taeda

        if not taeda.cuda.is_available():
            raise TypeError(
                f"type taeda.cuda.{cls.__name__} not available: there is no CUDA device"
            )
        return _C._legacy_tensor(cls.dtype, *args).cuda()

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


class sparsetensortype(tensortype):
    """The class of ``sparse.FloatTensor`` and its like: tensors of layout ``sparse_coo``."""

    layout = _C.sparse_coo
    is_sparse = True

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        from taeda.sparse._make import sparse_coo_tensor  # which is loaded on first use

        if len(args) in (2, 3) and isinstance(args[0], _C.Tensor):
            return sparse_coo_tensor(*args, dtype=cls.dtype, device=device)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if not all(isinstance(n, int) for n in sizes):
            raise TypeError(
                f"sparse.{cls.__name__}: expected indices and values, and maybe a size, or sizes "
                f"alone, got ({', '.join(type(a).__name__ for a in args)})"
            )
        indices = _C.ops.empty(max(len(sizes), 1), 0, dtype=_C.int64, device=device)
        values = _C.ops.empty(0, dtype=cls.dtype, device=device)
        return sparse_coo_tensor(indices, values, sizes or (0,), device=device)

    def __repr__(cls) -> str:
        return f"<class 'taeda.sparse.{cls.__name__}'>"


def sparse_types() -> dict[str, Any]:
    """The types of tensors of layout ``sparse_coo``, by name."""
    return {
        name: sparsetensortype(
            name,
            (),
            {
                "dtype": dtype,
                "__doc__": f"Sparse tensors of dtype {dtype}, made by indices, values and size.",
                "__module__": "taeda.sparse",
            },
        )
        for name, dtype in _NAMES.items()
        if name != "BoolTensor" and not name.startswith("Complex")
    }


def type_string(dtype: Any, layout: Any = _C.strided, cuda: bool = False) -> str:
    """Return the name that ``Tensor.type()`` gives a dtype, such as ``taeda.FloatTensor``.

    Tensors of layout ``sparse_coo`` have names like ``taeda.sparse.FloatTensor``, those on CUDA
    devices like ``taeda.cuda.FloatTensor``.
    """
    name = _STRINGS[dtype]
    kinds = [*(["cuda"] if cuda else []), *(["sparse"] if layout == _C.sparse_coo else [])]
    return name.replace(".", "".join(f".{kind}" for kind in kinds) + ".")


def is_cuda_type(kind: Any) -> bool:
    """Whether a tensor type, or the name of one, is for tensors on CUDA devices."""
    return isinstance(kind, cudatensortype) or (isinstance(kind, str) and ".cuda." in kind)


def device_of(kind: Any, tensor: Any) -> Any:
    """Where a tensor of this type is: a dtype leaves it where it is, as do types for other places.

    Args:
        kind: a dtype, a tensor type or the name of one.
        tensor: what is converted.
    """
    if is_cuda_type(kind):
        import taeda

        if not taeda.cuda.is_available():
            raise RuntimeError(
                f"type(): {kind!r} is for CUDA tensors, and there is no CUDA support"
            )
        return tensor.device if tensor.is_cuda else _C.device("cuda")
    return tensor.device if isinstance(kind, _C.dtype) or not tensor.is_cuda else _C.device("cpu")


def as_dtype(kind: Any) -> Any:
    """Return the dtype for a dtype, a tensor type or the name of one."""
    if isinstance(kind, _C.dtype):
        return kind
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
