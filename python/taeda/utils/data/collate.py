"""From samples to batches."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

import taeda

__all__ = ["default_collate", "default_convert"]

Function: TypeAlias = Callable[..., Any]
FunctionMap: TypeAlias = dict[type | tuple[type, ...], Function]

# NumPy's words for dtypes of strings and objects, as packages look for them.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

_WANTED = "batch must contain tensors, numpy arrays, numbers, dicts or lists"


def _numpy() -> Any:
    """NumPy, where the program has imported it: there can be no arrays where it has not."""
    return sys.modules.get("numpy")


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def default_convert(data: Any) -> Any:
    """Turn the NumPy arrays in a sample into tensors, and leave everything else as it is.

    Args:
        data: a sample; dicts, named tuples, tuples and lists are gone through.
    """
    numpy = _numpy()
    if isinstance(data, taeda.Tensor):
        return data
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        return data if data.dtype.kind in "SUO" else taeda.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_named_tuple(data):
        return type(data)(*(default_convert(part) for part in data))
    if isinstance(data, tuple):
        return [default_convert(part) for part in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(part) for part in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Make a batch of a list of samples, as a DataLoader does where it is given no other way.

    Tensors and NumPy arrays are stacked along a new first dimension; Python numbers become a tensor
    (floats one of float64); strings stay a list; dicts, lists and tuples of these are gone through,
    so that a list of pairs becomes a pair (as a list) of batches.

    Args:
        batch: samples of one structure.

    Raises:
        TypeError: the samples hold something else.
        RuntimeError: they differ in size.

    >>> taeda.utils.data.default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=taeda.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Tensors of one shape, stacked along a new first dimension."""
    return taeda.stack(tuple(batch), 0)


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Floats as a tensor of float64."""
    return taeda.tensor(batch, dtype=taeda.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Ints as a tensor of int64, bools as one of bool."""
    return taeda.tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Strings as they are, in their list."""
    return batch


# What `default_collate` does with samples of a type. Other types may be added.
default_collate_fn_map: FunctionMap = {
    taeda.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Make a batch of a list of samples, with a function for each type of sample.

    Args:
        batch: samples of one structure; mappings and sequences are gone through.
        collate_fn_map: from a type, or a tuple of types, to a function, which is called as
            ``function(batch, collate_fn_map=collate_fn_map)``. A sample's own type comes first,
            then the first type that it is an instance of. ``default_collate_fn_map`` is what
            ``default_collate`` goes by.

    Raises:
        TypeError: the samples hold something else.
        RuntimeError: they differ in size.
    """
    first = batch[0]
    if collate_fn_map is not None:
        function = _function_for(first, collate_fn_map)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
        numpy = _numpy()
        if numpy is not None and isinstance(first, (numpy.ndarray, numpy.generic)):
            return _collate_arrays(batch, numpy)
    if isinstance(first, Mapping):
        parts = {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
            for key in first
        }
        return _like_mapping(first, parts)
    if isinstance(first, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(f"default_collate: {_WANTED}; found {type(first)}")


def _function_for(sample: Any, functions: FunctionMap) -> Function | None:
    kind = type(sample)
    if kind in functions:
        return functions[kind]
    return next((f for types, f in functions.items() if isinstance(sample, types)), None)


def _collate_arrays(batch: Sequence[Any], numpy: Any) -> Any:
    """NumPy's arrays and numbers, as a tensor."""
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(f"default_collate: {_WANTED}; found {first.dtype}")
    if first.shape == ():
        return taeda.as_tensor(numpy.asarray(batch))
    return taeda.stack([taeda.as_tensor(sample) for sample in batch], 0)


def _collate_sequences(batch: Sequence[Any], functions: FunctionMap | None) -> Any:
    first = batch[0]
    lengths = {len(sample) for sample in batch}
    if len(lengths) > 1:
        raise RuntimeError(
            "default_collate: each element in list of batch should be of equal size, got "
            f"lengths {sorted(lengths)}"
        )
    columns = [collate(column, collate_fn_map=functions) for column in zip(*batch, strict=True)]
    if _is_named_tuple(first):
        return type(first)(*columns)
    return columns if isinstance(first, tuple) else _like_sequence(first, columns)


def _like_mapping(like: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    """``parts`` in a mapping of the type of ``like``, where that can be made."""
    if type(like) is dict:
        return parts
    try:
        if isinstance(like, MutableMapping):
            # A copy keeps what else the object carries, such as a default factory.
            result = copy.copy(like)
            result.update(parts)
            return result
        return type(like)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts


def _like_sequence(like: Sequence[Any], parts: list[Any]) -> Any:
    """``parts`` in a sequence of the type of ``like``, where that can be made."""
    if type(like) is list:
        return parts
    try:
        if isinstance(like, MutableSequence):
            result = copy.copy(like)
            for i, part in enumerate(parts):
                result[i] = part
            return result
        return type(like)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts
