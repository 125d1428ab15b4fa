"""Methods of Tensor that are written in Python. Importing the module puts them into the class."""

from __future__ import annotations

import builtins
import copy
import sys
from typing import Any

from taeda import _C
from taeda._tensor import cuda_array as _cuda_array
from taeda._tensor.more_methods import METHODS
from taeda._tensor.sparse_methods import SPARSE_METHODS

Tensor = _C.Tensor


# ---- dtype and device ---------------------------------------------------------------------------

_CONVERSIONS = {
    "bool": _C.bool,
    "byte": _C.uint8,
    "char": _C.int8,
    "short": _C.int16,
    "int": _C.int32,
    "long": _C.int64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "float": _C.float32,
    "double": _C.float64,
    "chalf": _C.complex32,
    "cfloat": _C.complex64,
    "cdouble": _C.complex128,
}


def _conversion(name: str, dtype: Any) -> Any:
    def convert(self: Any, memory_format: Any = _C.preserve_format) -> Any:
        return self.to(dtype, memory_format=memory_format)

    convert.__doc__ = f"Return the values as {dtype}: the tensor itself where it has this dtype."
    return convert


def _cuda(
    self: Any,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: Any = _C.preserve_format,
) -> Any:
    """Return a copy on a CUDA device; RuntimeError in a build without CUDA."""
    target = "cuda" if device is None else device
    return self.to(target, non_blocking=non_blocking, memory_format=memory_format)


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the tensor's type, or the values as another dtype.

    Args:
        dtype: a dtype, a type such as ``taeda.FloatTensor`` or its name. ``None`` asks for it.
        non_blocking: as for ``to``.
    """
    from taeda._tensor import types as _tensor_types

    if dtype is None:
        return _tensor_types.type_string(self.dtype, self.layout, self.is_cuda)
    device = _tensor_types.device_of(dtype, self)
    return self.to(device, _tensor_types.as_dtype(dtype), non_blocking=non_blocking)


# ---- making tensors like this one ---------------------------------------------------------------


def _new_tensor(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Return a copy of ``data`` with this tensor's dtype and device, unless others are given."""
    dtype = self.dtype if dtype is None else dtype
    device = self.device if device is None else device
    return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def _new(self: Any, *args: Any, size: Any = None) -> Any:
    """Return a tensor of this dtype: ``new(2, 3)`` by sizes, ``new([1, 2])`` by values."""
    if size is not None:
        if args:
            raise TypeError("new() takes either sizes or values, or size=, not both")
        return _C._legacy_tensor(self.dtype, *size)
    return _C._legacy_tensor(self.dtype, *args)


# ---- NumPy --------------------------------------------------------------------------------------


def _numpy(self: Any, *, force: bool = False) -> Any:
    """Return the values as a NumPy array that shares the tensor's memory.

    Args:
        force: detach a tensor that requires grad first, instead of raising RuntimeError.
    """
    if self.requires_grad:
        if not force and _C.is_grad_enabled():
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. "
                "Use tensor.detach().numpy() instead."
            )
        self = self.detach()
    return _C._to_numpy(self)


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"a tensor of {self.dtype} gives no array of {dtype} without a copy")
        return array.astype(dtype, copy=True)
    return array.copy() if copy else array


def _array_wrap(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    import numpy

    array = numpy.asarray(array)
    if array.dtype == bool:
        return _C.from_numpy(array.astype("uint8")).to(_C.bool)
    return _C.from_numpy(array)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """Return ``taeda.array_api``, the functions of the array API standard.

    Args:
        api_version: a version of the standard; ValueError if it is not known.
    """
    from taeda.array_api._info import namespace_of

    return namespace_of(api_version)


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Return the tensor on a device: the array API standard's name for ``to``.

    Args:
        device: the device.
        stream: must be ``None``: no device here has streams.
    """
    if stream is not None:
        raise ValueError(f"to_device(): stream must be None, got {stream!r}")
    return self.to(device)


# ---- copying and pickling -----------------------------------------------------------------------


def _deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol "
            "at the moment. Use tensor.detach().clone() for the values of this one."
        )
    if _C._is_placeholder(self):
        return _finish_copy(_clone_by_class(self), self, memo)
    # Views of one storage stay views of one storage.
    storage = self.untyped_storage()
    key = ("storage", storage._cdata)
    if key not in memo:
        memo[key] = storage.clone()
    result = _C.ops.empty((0,), dtype=self.dtype, device=self.device)
    result.set_(memo[key], self.storage_offset(), self.size(), self.stride())
    if type(self) is not Tensor:
        result = Tensor._make_subclass(type(self), result)
    return _finish_copy(result, self, memo)


def _clone_by_class(self: Any) -> Any:
    """A copy of a tensor without memory, which only its class can make."""
    with sys.modules["taeda"].no_grad():
        result = self.clone()
    if type(result) is not type(self):
        raise RuntimeError(
            f"deepcopy: {type(self).__name__}.clone() must give a {type(self).__name__}, got "
            f"{type(result).__name__}; define __deepcopy__ where it cannot"
        )
    return result


def _finish_copy(result: Any, self: Any, memo: dict[Any, Any]) -> Any:
    if self.requires_grad:
        result.requires_grad_()
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def _copy(self: Any) -> Any:
    if _C._is_placeholder(self):
        return _rebuild_placeholder(type(self), _properties(self), str(self.device), self.__dict__)
    result = Tensor._make_subclass(type(self), self.detach(), self.requires_grad)
    result.__dict__.update(self.__dict__)
    return result


def _rebuild(
    cls: Any,
    dtype: Any,
    size: Any,
    buffer: Any,
    requires_grad: bool,
    attributes: Any,
    device: str = "cpu",
) -> Any:
    """Make a tensor from the result of ``__reduce_ex__``."""
    if 0 in size:
        result = _C.ops.empty(size, dtype=dtype)
    else:
        if isinstance(buffer, bytes):
            buffer = bytearray(buffer)
        result = _C.frombuffer(buffer, dtype=dtype).reshape(size)
    if device != "cpu":
        result = result.to(device)
    if cls is not Tensor:
        result = Tensor._make_subclass(cls, result)
    if requires_grad:
        result.requires_grad_()
    if attributes:
        result.__dict__.update(attributes)
    return result


def _rebuild_meta(cls: Any, dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    """Make a tensor without data."""
    result = _C.ops.empty_strided(size, stride, dtype=dtype, device="meta")
    if cls is not Tensor:
        result = Tensor._make_subclass(cls, result)
    return result.requires_grad_() if requires_grad else result


def _rebuild_placeholder(
    cls: Any, properties: dict[str, Any], device: str, attributes: dict[str, Any]
) -> Any:
    """Make a tensor without memory, of a class that keeps its values in attributes."""
    result = Tensor._make_wrapper_subclass(cls, device=device, **properties)
    result.__dict__.update(attributes)
    return result


def _properties(self: Any) -> dict[str, Any]:
    """What ``_make_wrapper_subclass`` takes, but the device."""
    return {
        "size": tuple(self.shape),
        "strides": self.stride(),
        "storage_offset": self.storage_offset(),
        "dtype": self.dtype,
        "requires_grad": self.requires_grad,
    }


def _reduce_ex(self: Any, protocol: int) -> Any:
    cls, size = type(self), tuple(self.shape)
    if _C._is_placeholder(self):
        return _rebuild_placeholder, (cls, _properties(self), str(self.device), self.__dict__)
    if self.is_meta:
        return _rebuild_meta, (cls, self.dtype, size, self.stride(), self.requires_grad)
    values = self.detach().cpu().contiguous()
    if type(values) is not Tensor:
        values = values.as_subclass(Tensor)
    data: Any = b""
    if values.numel():
        start = values.storage_offset() * values.element_size()
        memory = memoryview(values.untyped_storage())[start : start + values.nbytes]
        if protocol >= 5:
            import pickle

            data = pickle.PickleBuffer(memory)
        else:
            data = bytes(memory)
    parts = (cls, self.dtype, size, data, self.requires_grad, self.__dict__ or None)
    return _rebuild, parts if self.is_cpu else (*parts, str(self.device))


# ---- the rest of Python's protocols -------------------------------------------------------------


def _format(self: Any, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _reversed(self: Any) -> Any:
    return self if self.dim() == 0 else self.flip(0)


def _nonzero(self: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero.

    Args:
        as_tuple: one index tensor per dimension, instead of a matrix with one row per element.
    """
    return _C.ops._nonzero_tuple(self) if as_tuple else _C.ops.nonzero(self)


def _is_nonzero(self: Any) -> bool:
    """Whether the only element is non-zero; RuntimeError unless there is exactly one."""
    return bool(self)


def _resize_as(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the sizes, in place, to those of another tensor.

    Args:
        the_template: the other tensor.
        memory_format: the order of the dimensions in memory; contiguous by default, and the other
            tensor's for ``preserve_format``.
    """
    if memory_format is _C.preserve_format:
        memory_format = None
        for format, rank in ((_C.channels_last, 4), (_C.channels_last_3d, 5)):
            fits = the_template.dim() == rank and not the_template.is_contiguous()
            if fits and the_template.is_contiguous(memory_format=format):
                memory_format = format
    return _resize(self, the_template.shape, memory_format=memory_format)


def _resize(self: Any, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
    """`resize_` with keyword arguments."""
    if size is not None:
        sizes = (*sizes, size)
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    self.resize_(shape)
    if memory_format is None or memory_format is _C.contiguous_format:
        return self
    strides = _C.ops.empty(shape, device="meta", memory_format=memory_format).stride()
    return self.set_(self.untyped_storage(), self.storage_offset(), shape, strides)


def _sum_to_size(self: Any, *size: Any) -> Any:
    """Sum over the dimensions in which this shape was broadcast from ``size``."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = self.dim() - len(shape)
    fits = extra >= 0 and all(n in (1, m) for n, m in zip(shape, self.shape[extra:], strict=True))
    if not fits:
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(self.shape)}.")
    if not shape:
        return self.sum()
    dims = [*range(extra)]
    dims += [i + extra for i, n in enumerate(shape) if n == 1 and self.shape[i + extra] != 1]
    return self.sum(dims, keepdim=True).view(shape) if dims else self


def _apply(self: Any, callable: Any) -> Any:
    """Replace each element, in place, by a Python function of it. Slow."""
    values = self.detach()
    for index in range(values.numel()):
        place = _unravel(index, values.shape)
        values[place] = callable(values[place].item())
    return self


def _map(self: Any, tensor: Any, callable: Any) -> Any:
    """Replace each element, in place, by a Python function of it and another's. Slow.

    Args:
        tensor: the other elements, of the same dtype; broadcast to this tensor's shape.
        callable: takes two numbers and returns one.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"map_(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}"
        )
    if self.requires_grad or tensor.requires_grad:
        raise RuntimeError(
            "Can't call map_() on Variable that requires grad. Use var.detach().map_() instead."
        )
    if tensor.dtype != self.dtype or tensor.device != self.device:
        raise TypeError(
            f"map_(): expected a tensor of {self.dtype} on {self.device}, got one of "
            f"{tensor.dtype} on {tensor.device}"
        )
    if not builtins.callable(callable):
        raise TypeError(f"map_(): '{type(callable).__name__}' object is not callable")
    pairs = zip(self.flatten().tolist(), tensor.expand_as(self).flatten().tolist(), strict=True)
    values = _C.tensor([callable(x, y) for x, y in pairs])
    return self.copy_(values.to(self.dtype).view(self.shape))


def _unique(
    self: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """See ``taeda.unique``."""
    from taeda.functional import unique

    return unique(self, sorted, return_inverse, return_counts, dim)


def _unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """See ``taeda.unique_consecutive``."""
    from taeda.functional import unique_consecutive

    return unique_consecutive(self, return_inverse, return_counts, dim)


def _storage(self: Any) -> Any:
    """Return the storage of the tensor and its views, as elements of its dtype."""
    from taeda.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


def _unravel(index: int, shape: Any) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        index, rest = divmod(index, size)
        place.append(rest)
    return tuple(reversed(place))


def _reflected_divide(self: Any, other: Any) -> Any:
    """Divide ``other`` by the tensor."""
    if not isinstance(self, Tensor):
        raise TypeError(f"__rdiv__() needs a Tensor, got {type(self).__name__}")
    return self.__rtruediv__(other)


def _filename(self: Any) -> str | None:
    """The path of the file that a storage is mapped from."""
    from taeda.storage import _filename

    return _filename(self)


def _repr_html(self: Any) -> str | None:
    """What notebooks show: a small table, or images; None where the text says more."""
    from taeda._display import tensor_html

    return tensor_html(self)


def _install() -> None:
    methods = {
        **{name: _conversion(name, dtype) for name, dtype in _CONVERSIONS.items()},
        "cuda": _cuda,
        "type": _type,
        "new_tensor": _new_tensor,
        "new": _new,
        "numpy": _numpy,
        "nonzero": _nonzero,
        "is_nonzero": _is_nonzero,
        "resize_as_": _resize_as,
        "sum_to_size": _sum_to_size,
        "apply_": _apply,
        "map_": _map,
        "storage": _storage,
        "unique": _unique,
        "unique_consecutive": _unique_consecutive,
        "__rdiv__": _reflected_divide,
        "__array__": _array,
        "__array_wrap__": _array_wrap,
        "__array_namespace__": _array_namespace,
        "to_device": _to_device,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__reduce_ex__": _reduce_ex,
        "__format__": _format,
        "__reversed__": _reversed,
    }
    for name, method in {**methods, **METHODS, **SPARSE_METHODS}.items():
        method.__name__ = name
        method.__qualname__ = f"Tensor.{name}"
        setattr(Tensor, name, method)
        if not name.startswith("__"):
            _C._ask_overrides(method)
    setattr(Tensor, "_repr_html_", _repr_html)  # noqa: B010
    Tensor.is_ipu = property(lambda self: False, doc="Whether it is on an IPU: no.")
    Tensor.is_xla = property(lambda self: False, doc="Whether it is on an XLA device: no.")
    shared = property(_cuda_array.interface, doc="How libraries share memory of a CUDA device.")
    setattr(Tensor, "__cuda_array_interface__", shared)  # noqa: B010
    setattr(_C.UntypedStorage, "filename", property(_filename))  # noqa: B010
    Tensor.__array_priority__ = 1000
    # A number that is unique among live tensors, which packages use as an identity.
    Tensor._cdata = property(id)


_install()
