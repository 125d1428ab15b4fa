"""The memory behind tensors, as bytes (`UntypedStorage`) or as elements (`TypedStorage`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import taeda
from taeda._C import Tensor, UntypedStorage
from taeda._tensor import types as _tensor_types

_DTYPES = {name.replace("Tensor", "Storage"): dtype for name, dtype in _tensor_types._NAMES.items()}

__all__ = [*_DTYPES, "StorageBase", "TypedStorage", "UntypedStorage", "from_file"]

StorageBase = UntypedStorage  # in PyTorch a base class, of this one alone


class TypedStorage:
    """Memory as a row of elements of one dtype. `Tensor.storage()` returns one.

    Args:
        args: how many elements, or their values; none by default.
        wrap_storage: look at this memory instead of new.
        dtype: that of the elements; the default dtype unless given.
        device: where new memory is, the cpu by default.

    >>> x = taeda.zeros(2, 2)
    >>> storage = x[1].storage()
    >>> len(storage), storage.nbytes()
    (4, 16)
    >>> storage[3] = 5
    >>> x
    tensor([[0., 0.],
            [0., 5.]])
    """

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: taeda.dtype | None = None,
        device: Any = None,
    ) -> None:
        self.dtype = taeda.get_default_dtype() if dtype is None else dtype
        if len(args) > 1 or (args and wrap_storage is not None):
            raise TypeError(
                "TypedStorage(): expected a size, values, or wrap_storage, but got "
                f"{len(args)} arguments{'' if wrap_storage is None else ' and wrap_storage'}"
            )
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    "TypedStorage(): argument 'wrap_storage' must be UntypedStorage, not "
                    f"{type(wrap_storage).__name__}"
                )
            if device is not None and taeda.device(device).type != wrap_storage.device.type:
                raise RuntimeError(
                    f"TypedStorage(): wrap_storage is on {wrap_storage.device}, not on {device}"
                )
            self._untyped = wrap_storage
        elif args and not isinstance(args[0], int):
            values = taeda.tensor(list(args[0]), dtype=self.dtype, device=device)
            self._untyped = values.untyped_storage()
        else:
            size = (args[0] if args else 0) * self.dtype.itemsize
            self._untyped = UntypedStorage(size, device=device)

    def _elements(self) -> Tensor:
        """All elements, as a tensor that shares the memory."""
        return taeda.empty(0, dtype=self.dtype, device=self.device).set_(self._untyped)

    # ---- properties ----

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """Return how many elements there are."""
        return self._untyped.nbytes() // self.dtype.itemsize

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Return how many bytes an element has."""
        return self.dtype.itemsize

    @property
    def device(self) -> taeda.device:
        """The device of the elements."""
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        """Whether they are on a CUDA device."""
        return self.device.type == "cuda"

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped.data_ptr()

    def is_shared(self) -> bool:
        """Whether processes forked from this one see the memory too."""
        return self._untyped.is_shared()

    def resizable(self) -> bool:
        """Whether `resize_` works."""
        return self._untyped.resizable()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self._untyped == other._untyped and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self._untyped, self.dtype))

    def __repr__(self) -> str:
        unknown = self.device.type == "meta"
        values = "" if unknown else "".join(f" {value}\n" for value in self.tolist())
        return (
            f"{values}[taeda.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {self.size()}]"
        )

    # ---- its elements ----

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices of a storage are read from its bytes: storage.untyped()")
        return self._elements()[self._place(index)].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if not isinstance(index, slice):
            index = self._place(index)
        self._elements()[index] = value

    def _place(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"can't index a TypedStorage with {type(index).__name__}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return index % self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        values: list[Any] = self._elements().tolist()
        return values

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: TypedStorage) -> TypedStorage:
        """Set every element to the one of another storage of the same size, converted."""
        if source.size() != self.size():
            raise RuntimeError(f"copy_(): the sizes differ: {self.size()} and {source.size()}")
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        # Tensors look for the copy of their memory under the same key.
        key = ("storage", self._untyped._cdata)
        if key not in memo:
            memo[key] = self._untyped.clone()
        return TypedStorage(wrap_storage=memo[key], dtype=self.dtype)

    def __reduce__(self) -> Any:
        return _rebuild, (self.dtype, self.tolist())

    def resize_(self, size: int) -> TypedStorage:
        """Change how many elements there are, keeping the first of them."""
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    def share_memory_(self) -> TypedStorage:
        """Move the elements to memory that processes forked from this one see too."""
        self._untyped.share_memory_()
        return self

    # ---- other dtypes ----

    def to(self, dtype: taeda.dtype) -> TypedStorage:
        """Return the elements converted to a dtype: this storage itself where it has it."""
        if dtype == self.dtype:
            return self
        values = self._elements().to(dtype)
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=dtype)

    def type(self) -> str:
        """Return the old name of such a storage, such as ``taeda.FloatStorage``."""
        return _tensor_types.type_string(self.dtype).replace("Tensor", "Storage")

    def cpu(self) -> TypedStorage:
        """Return the storage: it is on the cpu."""
        values = self._elements().cpu()
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=self.dtype)


def _rebuild(dtype: taeda.dtype, values: list[Any]) -> TypedStorage:
    """Rebuild a pickled storage."""
    return TypedStorage(values, dtype=dtype)


class _StorageType(type):
    """The class of FloatStorage and its like: calling one makes a TypedStorage of its dtype."""

    dtype: taeda.dtype
    is_cuda = False

    def __call__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> Any:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'taeda.{cls.__name__}'>"

    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0
    ) -> TypedStorage:
        """Map a file of ``size`` elements; changes are written to it if ``shared``."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=cls.dtype)


class _CudaStorageType(_StorageType):
    """The class of ``cuda.FloatStorage`` and its like, of which this build has none."""

    is_cuda = True

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"cuda.{cls.__name__}: taeda is not compiled with CUDA")

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) and bool(instance.is_cuda)


def _types(kind: type[_StorageType], module: str) -> dict[str, Any]:
    return {
        name: kind(
            name,
            (),
            {"dtype": dtype, "__doc__": f"Storages of {dtype}.", "__module__": module},
        )
        for name, dtype in _DTYPES.items()
    }


_TYPES = _types(_StorageType, "taeda")
BFloat16Storage: Any = _TYPES["BFloat16Storage"]
BoolStorage: Any = _TYPES["BoolStorage"]
ByteStorage: Any = _TYPES["ByteStorage"]
CharStorage: Any = _TYPES["CharStorage"]
ComplexDoubleStorage: Any = _TYPES["ComplexDoubleStorage"]
ComplexFloatStorage: Any = _TYPES["ComplexFloatStorage"]
DoubleStorage: Any = _TYPES["DoubleStorage"]
FloatStorage: Any = _TYPES["FloatStorage"]
HalfStorage: Any = _TYPES["HalfStorage"]
IntStorage: Any = _TYPES["IntStorage"]
LongStorage: Any = _TYPES["LongStorage"]
ShortStorage: Any = _TYPES["ShortStorage"]


def cuda_types() -> dict[str, Any]:
    """The types of storages on CUDA devices, by name."""
    return _types(_CudaStorageType, "taeda.cuda")


def type_of(dtype: taeda.dtype) -> Any:
    """The storage type of a dtype, None where it has none."""
    return next((_TYPES[name] for name, kind in _DTYPES.items() if kind == dtype), None)


def _filename(self: UntypedStorage) -> str | None:
    """The path of the file that the memory is mapped from, if changes are written to it."""
    if self.device.type != "cpu" or not self.nbytes():
        return None
    address = self.data_ptr()
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                place, rights, _, _, _, *path = line.rstrip("\n").split(maxsplit=5)
                first, last = (int(word, 16) for word in place.split("-"))
                if first <= address < last:
                    shared = rights.endswith("s") and path and path[0].startswith("/")
                    return path[0] if shared and not path[0].startswith("/memfd:") else None
    except OSError:
        pass
    return None


def _conversion(name: str, dtype: taeda.dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self.to(dtype)

    convert.__name__ = name
    convert.__qualname__ = f"TypedStorage.{name}"
    convert.__doc__ = f"Return the elements as {dtype}: the storage itself where it has this dtype."
    return convert


for _name, _dtype in {
    "bool": taeda.bool,
    "byte": taeda.uint8,
    "char": taeda.int8,
    "short": taeda.int16,
    "int": taeda.int32,
    "long": taeda.int64,
    "half": taeda.float16,
    "bfloat16": taeda.bfloat16,
    "float": taeda.float32,
    "double": taeda.float64,
    "complex_float": taeda.complex64,
    "complex_double": taeda.complex128,
}.items():
    setattr(TypedStorage, _name, _conversion(_name, _dtype))


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor over memory that is mapped from a file.

    Args:
        filename: the file's path.
        shared: write changes to the file, which is made, or made longer, where need be.
            Default: changes stay in memory.
        size: the number of elements.
        dtype: of the elements. Default: the default dtype.
        layout: strided, the default.
        device: the CPU, the default.
        pin_memory: not possible for such memory.
        requires_grad: whether to record operations on the tensor.

    Raises:
        RuntimeError: the file cannot be opened, or is too short and not shared; or the tensor is to
            be elsewhere than in the CPU's plain memory.
    """
    if layout not in (None, taeda.strided):
        raise RuntimeError(f"from_file: the layout must be strided, got {layout}")
    if device is not None and taeda.device(device).type != "cpu":
        raise RuntimeError(f"from_file: files are mapped into the CPU's memory, not {device}'s")
    if pin_memory:
        raise RuntimeError("from_file: memory that is mapped from a file cannot be pinned")
    dtype = taeda.get_default_dtype() if dtype is None else dtype
    storage = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    tensor = taeda.empty(0, dtype=dtype, device="cpu").set_(storage, 0, (size,), (1,))
    return tensor.requires_grad_() if requires_grad else tensor


def _load_from_bytes(data: bytes) -> Any:
    """A storage from the file that ``data`` is: so PyTorch's tensors are pickled by `pickle`."""
    import io

    from taeda.serialization import load

    return load(io.BytesIO(data), weights_only=False)
