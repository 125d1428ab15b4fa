"""The functions that a checkpoint's pickle stream calls, and the names the stream knows them by.

A checkpoint names PyTorch's functions, storage types and dtypes (``torch._utils
_rebuild_tensor_v2``, ``torch FloatStorage``), so that either library reads what the other wrote.
``names()`` maps our objects to those names for writing; ``lookup`` goes the other way for reading.
Everything here checks its arguments: they come from a file.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import lru_cache
from pickle import UnpicklingError
from types import FunctionType
from typing import Any

import taeda
from taeda._tensor.types import TYPES as _TYPES
from taeda.storage import TypedStorage

from ._limits import brief, current

_STORAGE_DTYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
# Dtypes without a storage type: their tensors are written over storages of bytes.
_UNTYPED_DTYPES = [
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "complex32",
]


class TorchName:
    """Something a stream names that has no object of its own here, such as a storage type."""

    def __init__(self, module: str, name: str, dtype: Any = None) -> None:
        self.module = module
        self.name = name
        self.dtype = dtype  # of a typed storage's elements

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


class LoadedStorage(TypedStorage):
    """A storage read from a file: for building tensors, and the result of loading a storage.

    Args:
        flat: its bytes, as a one-dimensional uint8 tensor.
        dtype: of its elements; None where they are bytes of which nothing is said.
    """

    def __init__(self, flat: Any, dtype: Any) -> None:
        super().__init__(wrap_storage=flat.untyped_storage(), dtype=dtype)
        self.flat = flat
        self.dtype = dtype


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise UnpicklingError(f"load: the file is not a valid checkpoint: {what}")


_MOST_DIMS = 64


def _is_ints(values: Any) -> bool:
    """Whether they can be a tensor's sizes or strides."""
    return (
        isinstance(values, (tuple, list))
        and len(values) <= _MOST_DIMS
        and all(type(v) is int and 0 <= v < 1 << 63 for v in values)
    )


def _strided(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Any:
    """A tensor over ``storage``, after checking that the storage covers all of it."""
    if isinstance(storage, taeda.UntypedStorage):
        flat = taeda.empty(0, dtype=taeda.uint8, device=storage.device).set_(storage)
        storage = LoadedStorage(flat, None)
    _require(isinstance(storage, LoadedStorage), "a tensor is built on something not a storage")
    dtype = storage.dtype if dtype is None else dtype
    _require(isinstance(dtype, taeda.dtype), "a tensor is built on a storage without a dtype")
    _require(_is_ints(size) and _is_ints(stride), "a tensor's sizes or strides are no integers")
    _require(len(size) == len(stride), "a tensor has not one stride for each size")
    _require(type(offset) is int and 0 <= offset < 1 << 63, "a tensor's offset is no size")
    current().take(1000, "its tensors")
    held = storage.flat.numel() // dtype.itemsize
    if all(size):
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        _require(last < held, f"a tensor needs {last + 1} elements of a storage that has {held}")
    else:
        # Nothing is read, so any offset will do, even one beyond the storage.
        offset = min(offset, held)
    result = taeda.empty(0, dtype=dtype, device=storage.flat.device)
    start = storage.flat.storage_offset()
    _require(start % dtype.itemsize == 0, "a view of a storage starts within an element")
    offset += start // dtype.itemsize
    return result.set_(storage.flat.untyped_storage(), offset, tuple(size), tuple(stride))


def _no_hooks(hooks: Any) -> None:
    _require(not hooks, "a tensor carries backward hooks, which are not loaded")


def _resolved(tensor: Any, marks: Any) -> Any:
    """The tensor of memory that PyTorch saved before it was conjugated or negated."""
    if not marks:
        return tensor
    known = isinstance(marks, dict) and all(
        type(name) is str and name in ("conj", "neg") and type(on) is bool
        for name, on in marks.items()
    )
    _require(known, "a tensor's marks are not known")
    current().take(2 * tensor.nbytes, "a conjugated or negated tensor")
    if marks.get("conj"):
        _require(tensor.is_complex(), "a tensor that is not complex is conjugated")
        tensor = tensor.conj()
    if marks.get("neg"):
        signed = tensor.is_floating_point() or tensor.is_complex()
        _require(signed, "a tensor that is neither real nor complex is negated")
        tensor = tensor.neg()
    return tensor


def rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Any:
    """A tensor that needs no gradient (files of PyTorch before 0.4)."""
    return _strided(storage, offset, size, stride)


def rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    """A tensor over a stored storage."""
    _require(type(requires_grad) is bool, "requires_grad is not a bool")
    _no_hooks(backward_hooks)
    tensor = _resolved(_strided(storage, offset, size, stride), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Any:
    """A tensor over a stored storage that has no dtype of its own."""
    _require(type(requires_grad) is bool, "requires_grad is not a bool")
    _require(isinstance(dtype, taeda.dtype), "a tensor's dtype is none")
    _no_hooks(backward_hooks)
    tensor = _resolved(_strided(storage, offset, size, stride, dtype), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    """A tensor on the meta device, which has no storage."""
    _require(isinstance(dtype, taeda.dtype), "a meta tensor's dtype is none")
    _require(_is_ints(size) and _is_ints(stride), "a tensor's sizes or strides are no integers")
    _require(type(requires_grad) is bool, "requires_grad is not a bool")
    return taeda.empty_strided(
        tuple(size), tuple(stride), dtype=dtype, device="meta", requires_grad=requires_grad
    )


def rebuild_wrapper_subclass(
    kind: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    offset: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
) -> Any:
    """A tensor without memory, whose class keeps its values in attributes."""
    _require(isinstance(kind, type) and issubclass(kind, taeda.Tensor), "a class is no tensor's")
    _require(isinstance(dtype, taeda.dtype), "a wrapper's dtype is none")
    _require(_is_ints(size) and _is_ints(stride), "a tensor's sizes or strides are no integers")
    _require(type(offset) is int, "a tensor's offset is no integer")
    _require(layout is taeda.strided, "a wrapper's layout is not strided")
    _require(isinstance(device, taeda.device), "a wrapper's device is none")
    _require(type(requires_grad) is bool, "requires_grad is not a bool")
    return taeda.Tensor._make_wrapper_subclass(
        kind,
        tuple(size),
        strides=tuple(stride),
        storage_offset=offset,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    """A Parameter."""
    from taeda.nn import Parameter

    _require(isinstance(data, taeda.Tensor), "a parameter's data is not a tensor")
    _require(type(requires_grad) is bool, "requires_grad is not a bool")
    _no_hooks(backward_hooks)
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Any:
    """A Parameter with attributes of its own."""
    return set_attributes(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type_v2(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or one with attributes of its own."""
    from taeda.serialization._nested import rebuild_jagged  # which is made of these functions

    if function is rebuild_jagged:
        _require(isinstance(args, tuple) and len(args) == 1, "a nested tensor is badly made")
        return rebuild_jagged(*args)
    _require(function in _REBUILDERS, f"{brief(function)} does not build tensors")
    _require(
        isinstance(kind, type) and issubclass(kind, taeda.Tensor), f"{brief(kind)} is no tensor"
    )
    _require(isinstance(args, tuple), "the arguments of a call are not a tuple")
    result = function(*args)
    if type(result) is not kind:
        result = result.as_subclass(kind)
    set_state = getattr(kind, "__setstate__", None)
    if set_state and set_state is not getattr(taeda.Tensor, "__setstate__", None):
        set_state(result, state)
        return result
    return set_attributes(result, state)


def set_attributes(target: Any, state: Any) -> Any:
    if isinstance(state, tuple) and len(state) == 2:
        attributes, slots = state
    else:
        attributes, slots = state, None
    for part in (attributes, slots):
        _require(part is None or isinstance(part, dict), "an object's attributes are not a dict")
        current().step(16 * len(part or ()))
        for name, value in (part or {}).items():
            _require(isinstance(name, str), "the name of an attribute is not a string")
            setattr(target, name, value)
    return target


def get_layout(name: Any) -> Any:
    """A layout by the name that PyTorch writes."""
    layouts = {"torch.strided": taeda.strided, "torch.sparse_coo": taeda.sparse_coo}
    for compressed in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        layouts[f"torch.{compressed}"] = getattr(taeda, compressed)
    _require(isinstance(name, str) and name in layouts, f"there is no layout {brief(name)} here")
    return layouts[name]


def rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    """A sparse tensor of its parts, which are checked."""
    _require(isinstance(data, tuple) and len(data) in (3, 4), "a sparse tensor is badly made")
    coo = layout is taeda.sparse_coo
    sparse = isinstance(layout, taeda.layout) and layout is not taeda.strided
    _require(sparse, "a sparse tensor has no sparse layout")
    parts, rest = data[: 2 if coo else 3], data[2 if coo else 3 :]
    _require(all(type(x) is taeda.Tensor for x in parts), "a sparse tensor's part is no tensor")
    _require(len(rest) > 0 and _is_ints(rest[0]), "a sparse tensor has no size")
    _require(len(rest) == 1 or type(rest[1]) is bool, "a sparse tensor is badly made")
    current().take(2000, "its tensors")
    waiting = current().unfilled
    if waiting is None:
        return _sparse(layout, parts, rest)
    made = _unchecked_sparse(layout, parts, rest)
    waiting.append(lambda: _sparse(layout, parts, rest))
    return made


def _sparse(layout: Any, parts: Any, rest: Any) -> Any:
    try:
        if len(parts) == 2:
            indices, values = parts
            coalesced = len(rest) == 2 and rest[1]
            return taeda.sparse_coo_tensor(indices, values, size=rest[0], is_coalesced=coalesced)
        starts, places, values = parts
        return taeda.sparse_compressed_tensor(starts, places, values, rest[0], layout=layout)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise UnpicklingError(
            f"load: the file is not a valid checkpoint: a sparse tensor is badly made: {error}"
        ) from error


def _unchecked_sparse(layout: Any, parts: Any, rest: Any) -> Any:
    """Of parts whose values are read later, and checked then."""
    from taeda.sparse import _tensor

    if len(parts) == 2:
        indices, values = parts
        return _tensor.coo(indices, values, tuple(rest[0]), len(rest) == 2 and rest[1])
    starts, places, values = parts
    return _tensor.compressed(layout, starts, places, values, tuple(rest[0]))


_REBUILDERS = (
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_meta_tensor,
    rebuild_parameter,
    rebuild_wrapper_subclass,
    rebuild_sparse_tensor,
)


def _make_bytes(text: Any, codec: Any) -> bytes:
    _require(isinstance(text, str) and codec in ("latin1", "latin-1"), "bytes are badly encoded")
    current().take(len(text), "its bytes")
    data: bytes = text.encode("latin1")
    return data


def _make_bytearray(*args: Any) -> bytearray:
    if len(args) == 2:  # as Python 2 wrote it
        args = (_make_bytes(*args),)
    _require(not args or isinstance(args[0], bytes), "a bytearray is made from something else")
    current().take(len(args[0]) if args else 0, "its bytes")
    return bytearray(*args)


def _make_set(items: Any = ()) -> set[Any]:
    _require(isinstance(items, (list, tuple)), "a set is made from something other than a list")
    made: set[Any] = set()
    budget = current()
    budget.take(80 * len(items), "its sets")
    for item in items:
        made.add(budget.key(made, item))
    return made


def _make_complex(real: Any, imag: Any) -> complex:
    _require(type(real) is float and type(imag) is float, "a complex number's parts are no floats")
    return complex(real, imag)


def _make_ordered_dict(*args: Any) -> OrderedDict[Any, Any]:
    _require(not args or isinstance(args[0], (list, dict)), "an OrderedDict is badly made")
    made: OrderedDict[Any, Any] = OrderedDict()
    return _filled(made, args[0]) if args else made


def _filled(made: Any, items: Any) -> Any:
    """A dict of pairs, or of another dict's items."""
    budget = current()
    budget.take(200 * len(items), "its dicts")
    for pair in items.items() if isinstance(items, dict) else items:
        _require(isinstance(pair, (tuple, list)) and len(pair) == 2, "a dict is badly made")
        made[budget.key(made, pair[0])] = pair[1]
    return made


def _make_counter(*args: Any) -> Counter[Any]:
    _require(not args or isinstance(args[0], dict), "a Counter is badly made")
    made: Counter[Any] = Counter()
    return _filled(made, args[0]) if args else made


def _make_size(values: Any = ()) -> Any:
    _require(_is_ints(values), "a Size holds something other than integers")
    return taeda.Size(values)


def _make_device(*args: Any) -> Any:
    kinds = [type(a) for a in args]
    _require(kinds in ([str], [str, int]), "a device is badly made")
    return taeda.device(*args)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    """The objects that a file may name, by ``module.name``."""
    from taeda.nn import Parameter

    # It is made of the functions here.
    from taeda.serialization._nested import rebuild_jagged, rebuild_strided

    nested = "torch.nested._internal.nested_tensor"
    table: dict[str, Any] = {
        "collections.OrderedDict": _make_ordered_dict,
        "collections.Counter": _make_counter,
        "_codecs.encode": _make_bytes,
        "torch.Size": _make_size,
        "torch.device": _make_device,
        "torch.Tensor": taeda.Tensor,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.storage.UntypedStorage": TorchName("torch.storage", "UntypedStorage"),
        "torch._utils._rebuild_tensor": rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
        "torch.serialization._get_layout": get_layout,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
        "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
        "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper_subclass,
        "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type_v2,
        "torch._utils._rebuild_nested_tensor": rebuild_strided,
        f"{nested}._rebuild_njt": rebuild_jagged,
        f"{nested}.NestedTensor": TorchName(nested, "NestedTensor"),
    }
    for builtins in ("builtins", "__builtin__"):
        table[f"{builtins}.set"] = _make_set
        table[f"{builtins}.bytearray"] = _make_bytearray
        table[f"{builtins}.complex"] = _make_complex
    for name, kind in _TYPES.items():
        table[f"torch.{name}"] = kind
    for name in _UNTYPED_DTYPES:
        if hasattr(taeda, name):
            table[f"torch.{name}"] = getattr(taeda, name)
    for storage, name in _STORAGE_DTYPES.items():
        dtype = getattr(taeda, name)
        table[f"torch.{name}"] = dtype
        for module in ("torch", "torch.cuda"):
            table[f"{module}.{storage}"] = TorchName(module, storage, dtype)
    return table


def lookup(full_name: str) -> Any:
    """The object for a file's ``module.name``, or None if a file may not name it."""
    return _table().get(full_name)


@lru_cache(maxsize=1)
def _callables() -> frozenset[Any]:
    return frozenset(v for v in _table().values() if isinstance(v, FunctionType))


def is_callable_by_files(value: Any) -> bool:
    """Whether ``value``, found on a stream's stack, is one of the functions a stream may call."""
    return isinstance(value, FunctionType) and value in _callables()


def may_have_attributes(value: Any) -> bool:
    """Whether a stream may set attributes of ``value``: containers and tensors of ours only."""
    return type(value) in (OrderedDict, Counter) or isinstance(value, taeda.Tensor)


@lru_cache(maxsize=1)
def names() -> dict[Any, tuple[str, str]]:
    """The module and name to write for each object that PyTorch knows by another name."""
    result: dict[Any, tuple[str, str]] = {
        taeda.Size: ("torch", "Size"),
        taeda.device: ("torch", "device"),
    }
    for full_name, value in _table().items():
        module, _, name = full_name.rpartition(".")
        if module.startswith("torch") and not isinstance(value, TorchName):
            result[value] = (module, name)
    return result


@lru_cache(maxsize=1)
def storage_names() -> dict[Any, TorchName]:
    """The storage type to write for each dtype; for None, that of a storage without one."""
    result = {getattr(taeda, d): _table()[f"torch.{s}"] for s, d in _STORAGE_DTYPES.items()}
    result[None] = _table()["torch.storage.UntypedStorage"]
    return result
