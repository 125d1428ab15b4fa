"""The writing half of checkpoints: objects to a pickle stream and the storages it refers to."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import taeda
from taeda import _C
from taeda.storage import TypedStorage

from . import _rebuild
from ._places import name_to_write
from ._rebuild import TorchName

_PythonPickler: Any = pickle._Pickler

# The most frequent types in a stream; tested first, for speed.
_PLAIN = frozenset([dict, OrderedDict, list, tuple, str, int, float, bool, bytes, type(None)])


class _Stored:
    """Represents, in the stream, the storage of a tensor with elements of ``dtype``."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


# The pickler that is written in C looks every name up in the module it is said to be in, and
# PyTorch's modules need not be installed; the one written in Python lets its subclass write names.
class CheckpointPickler(_PythonPickler):  # type: ignore[misc]
    """Pickles to ``stream``; ``storages`` collects the tensors with separate bytes."""

    def __init__(self, protocol: int) -> None:
        self.stream = io.BytesIO()
        super().__init__(self.stream, protocol)
        from taeda.nn import Module, Parameter

        self._parameter, self._module = Parameter, Module
        self._keys: dict[int, tuple[str, Any]] = {}  # by the identity of the storage
        self.storages: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        """Reduce the types for which PyTorch has its own names."""
        if type(obj) in _PLAIN:
            return NotImplemented
        if isinstance(obj, taeda.Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, self._module):
            return _reduce_module(obj, self.proto)
        if isinstance(obj, TorchName):
            return obj.name
        if isinstance(obj, taeda.dtype):
            return repr(obj)
        if isinstance(obj, taeda.Size):
            return taeda.Size, (tuple(obj),)
        if isinstance(obj, taeda.layout):
            return _rebuild.get_layout, (repr(obj).replace("taeda", "torch"),)
        if isinstance(obj, taeda.device):
            args = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return taeda.device, args
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a name: PyTorch's for what it knows, otherwise where Python finds ``obj``."""
        known: tuple[str, str] | None = None
        if isinstance(obj, TorchName):
            known = (obj.module, obj.name)
        elif isinstance(obj, (type, FunctionType, _C.Op, taeda.dtype)):
            known = _rebuild.names().get(obj) or name_to_write(obj)
        if known is None:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + "{}\n{}\n".format(*known).encode())
        self.memoize(obj)

    dispatch = {**_PythonPickler.dispatch, FunctionType: save_global}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """The record by which the stream refers to a storage, which it does not itself hold."""
        kind = type(obj)
        if kind in _PLAIN:
            return None
        if kind is _Stored:
            tensor, dtype = obj.tensor, obj.tensor.dtype
            storage, location = tensor.untyped_storage(), str(tensor.device)
            count = storage.nbytes() // dtype.itemsize
            if dtype not in _rebuild.storage_names():
                dtype, count = None, storage.nbytes()
        elif isinstance(obj, taeda.UntypedStorage):
            storage, dtype, location = obj, None, str(getattr(obj, "device", "cpu"))
            tensor, count = storage, storage.nbytes()
        elif isinstance(obj, TypedStorage):
            storage, dtype, location = obj.untyped(), obj.dtype, str(obj.device)
            tensor, count = storage, obj.size()
        else:
            return None
        key, seen = self._keys.setdefault(storage._cdata, (str(len(self._keys)), dtype))
        if seen != dtype:
            raise RuntimeError(
                f"save: one storage is used both as {seen} and as {dtype}, which the format "
                "cannot express; save a clone() of one of the tensors"
            )
        if len(self.storages) < len(self._keys):
            self.storages.append(tensor)
        return ("storage", _rebuild.storage_names()[dtype], key, location, count)

    def _reduce_tensor(self, tensor: Any) -> Any:
        kind: Any = type(tensor)
        state = getattr(tensor, "__dict__", None) or None
        args: tuple[Any, ...]
        if _C._is_placeholder(tensor) and kind.__reduce_ex__ is taeda.Tensor.__reduce_ex__:
            shape = tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset()
            args = (kind, tensor.dtype, *shape, tensor.layout, tensor.device, tensor.requires_grad)
            rebuild = _rebuild.rebuild_wrapper_subclass
            return _rebuild.rebuild_from_type_v2, (rebuild, kind, args, state or {})
        if isinstance(tensor, self._parameter):
            args = (tensor.data, tensor.requires_grad, OrderedDict())
            if state is None:
                return _rebuild.rebuild_parameter, args
            return _rebuild.rebuild_parameter_with_state, (*args, state)
        if tensor.is_nested:
            from taeda.serialization._nested import reduce_nested

            return reduce_nested(tensor)
        if tensor.layout is not taeda.strided:
            return _rebuild.rebuild_sparse_tensor, (tensor.layout, _sparse_parts(tensor))
        if kind is not taeda.Tensor and kind.__reduce_ex__ is not taeda.Tensor.__reduce_ex__:
            return NotImplemented
        size, stride = tuple(tensor.size()), tuple(tensor.stride())
        if tensor.device.type == "meta":
            function: Any = _rebuild.rebuild_meta_tensor
            args = (tensor.dtype, size, stride, tensor.requires_grad)
        else:
            function = _rebuild.rebuild_tensor_v2
            place = (_Stored(tensor), tensor.storage_offset(), size, stride)
            args = (*place, tensor.requires_grad, OrderedDict())
            if tensor.dtype not in _rebuild.storage_names():
                function, args = _rebuild.rebuild_tensor_v3, (*args, tensor.dtype)
        if kind is taeda.Tensor and state is None:
            return function, args
        return _rebuild.rebuild_from_type_v2, (function, kind, args, state or {})


# The hooks that every module of PyTorch has, and that taeda's have when they are used.
_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_TABLES = ("_parameters", "_buffers", "_modules")


def _reduce_module(module: Any, protocol: int) -> Any:
    """A module with the attributes that PyTorch's have, which reads it back."""
    reduced = module.__reduce_ex__(protocol)
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    if not isinstance(state, dict) or not all(table in state for table in _TABLES):
        return reduced
    # Members are ordinary attributes here, but only in their tables in PyTorch.
    members = {name: value for table in _TABLES for name, value in state[table].items()}
    missing = object()
    plain = {k: v for k, v in state.items() if members.get(k, missing) is not v}
    plain.update({table: dict(state[table]) for table in _TABLES})
    for name in _HOOKS:
        plain.setdefault(name, OrderedDict())
    plain.setdefault("_is_full_backward_hook", None)
    if hasattr(module, "_flat_weights"):
        plain["_flat_weights"] = list(module._flat_weights)
    return (*reduced[:2], plain, *reduced[3:])


def _sparse_parts(tensor: Any) -> tuple[Any, ...]:
    """The components of a sparse tensor, in PyTorch's order."""
    tensor, size = tensor.detach(), taeda.Size(tensor.shape)
    if tensor.is_sparse:
        return tensor._indices(), tensor._values(), size, tensor.is_coalesced()
    return tensor._starts, tensor._places, tensor.values(), size


def storage_bytes(source: Any) -> memoryview:
    """All bytes of a storage, or of the storage behind a tensor, wherever it is."""
    if not isinstance(source, taeda.Tensor):
        return memoryview(source).cast("B") if source.nbytes() else memoryview(b"")
    storage = source.untyped_storage()
    if storage.nbytes() == 0:
        return memoryview(b"")
    if source.device.type == "cpu":
        return memoryview(storage).cast("B")
    count = storage.nbytes() // source.dtype.itemsize
    everything = source.detach().as_strided((count,), (1,), 0).cpu()
    return memoryview(everything.untyped_storage()).cast("B")
