"""References to tensors that do not keep them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from taeda._C import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class TensorWeakRef:
    """A reference to a tensor: called, it gives the tensor, or None once that is gone.

    >>> import taeda
    >>> from taeda.utils.weak import TensorWeakRef
    >>> x = taeda.ones(1)
    >>> ref = TensorWeakRef(x)
    >>> ref() is x
    True
    >>> del x
    >>> ref() is None
    True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected a Tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdRef(weakref.ref[Any]):
    """A reference that equals another one to the same object, whatever the object equals."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> WeakIdRef:
        """A reference; ``callback`` is called with it once the object is gone."""
        self = super().__new__(cls, key, callback)
        self._id = id(key)
        return self

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict by the identity of its keys, which it does not keep: who is gone is not in it."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        if dict is not None:
            self.update(dict)

    def _ref(self, key: Any) -> Any:
        data = self.data
        return self.ref_type(key, lambda ref: data.pop(ref, None))

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"


class WeakTensorKeyDictionary(WeakIdKeyDictionary):
    """A dict whose keys are tensors, which it does not keep.

    >>> import taeda
    >>> from taeda.utils.weak import WeakTensorKeyDictionary
    >>> x, d = taeda.ones(2), WeakTensorKeyDictionary()
    >>> d[x] = "ones"
    >>> d[x], len(d)
    ('ones', 1)
    >>> del x
    >>> len(d)
    0
    """
