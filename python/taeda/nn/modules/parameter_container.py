"""Modules that hold parameters in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from taeda._C import Tensor
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ParameterDict", "ParameterList"]


def _position(index: Any, length: int) -> int:
    """A list index as a non-negative one."""
    position = operator.index(index)
    if not -length <= position < length:
        raise IndexError(f"ParameterList: index {position} is out of range")
    return position % length


def _pairs(items: Any, kind: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{kind}.update should be called with an iterable of key/value pairs, but got "
            + type(items).__name__
        )
    if hasattr(items, "items"):
        yield from items.items()
        return
    for position, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{position} should be Iterable; is "
                + type(pair).__name__
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{kind} update sequence element #{position} has length {len(pair)}; 2 is required"
            )
        yield pair


class ParameterList(Module):
    """A list of parameters and of whatever else; tensors in it become parameters.

    Args:
        values: the first values.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        name = str(_position(index, len(self)))
        setattr(self, name, _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Add a value at the end; a tensor becomes a parameter."""
        setattr(self, str(len(self)), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end; tensors become parameters.

        Raises:
            TypeError: `values` is a tensor or not iterable.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove and return the value at `index`."""
        values = list(self)
        value = values.pop(index)
        for position in range(len(self)):
            delattr(self, str(position))
        self._size = 0
        self.extend(values)
        return value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A list of parameters cannot be called."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters and of whatever else; tensors in it become parameters.

    Args:
        parameters: names to values, or pairs of them; or names only, whose values are None.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"ParameterDict: a key must be a string, got {type(key).__name__}: {key!r}"
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._check_key(key)
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def _check_key(self, key: str) -> None:
        if self._attribute(key) not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict: attribute '{key}' already exists")

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Mapping[str, Any]) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Mapping[str, Any]) -> ParameterDict:
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other: Mapping[str, Any]) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a ParameterDict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, which is set to `default` if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value of `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the (key, value) that was added last."""
        key, _ = self._keys.popitem()
        value = getattr(self, self._attribute(key))
        delattr(self, self._attribute(key))
        return key, value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default` if it is missing."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with `default` for each of `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The (key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values, or replace those of the same keys; tensors become parameters."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            # An unordered source is taken in the order of its keys, as from_keys order may vary.
            parameters = dict(sorted(parameters.items()))
        pairs = list(_pairs(parameters, "ParameterDict"))
        for key, _ in pairs:
            self._check_key(key)
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A dictionary of parameters cannot be called."""
        raise RuntimeError("ParameterDict should not be called.")


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    sizes = "x".join(str(size) for size in value.shape)
    return f"{kind} containing: [{value.dtype} of size {sizes}{where}]"
