"""The size of a ragged dimension, which is no number: it differs from sequence to sequence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from taeda._symbols import SymInt


class NestedInt(SymInt):
    """The size of a ragged dimension: ``j1``, ``j2``, ..., or a multiple such as ``3*j1``.

    It equals itself alone: two nested tensors have the same one where they share their offsets.
    It is known to be at least 2, as a size that broadcasts to nothing else.
    """

    def __init__(self, number: int, factor: int = 1) -> None:
        self._number, self._factor = number, factor

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NestedInt)
            and self._number == other._number
            and self._factor == other._factor
        )

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int) or isinstance(other, bool):
            return NotImplemented
        return NestedInt(self._number, self._factor * other)

    __rmul__ = __mul__

    def _at_least(self, other: Any) -> bool:
        """Whether self >= other."""
        if self == other or (isinstance(other, (int, float)) and other <= 2):
            return True
        raise ValueError(f"the size {self} of a ragged dimension cannot be compared with {other}")

    def __ge__(self, other: Any) -> bool:
        return self._at_least(other)

    def __gt__(self, other: Any) -> bool:
        return self != other and self._at_least(other + 1)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least(other)

    def __le__(self, other: Any) -> bool:
        return self == other or not self._at_least(other + 1)

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            f"the size {self} of a ragged dimension is no number: it differs from sequence to "
            "sequence; offsets() of the nested tensor has the numbers"
        )

    __int__ = __float__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __floordiv__ = __truediv__ = __mod__ = __rfloordiv__ = __rtruediv__ = _refuse


class NestedSize(tuple[Any, ...]):
    """The sizes of a nested tensor's dimensions; it prints as a ``taeda.Size``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"taeda.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return NestedSize(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return NestedSize((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def numel(self) -> Any:
        """The product of the sizes: a multiple of the ragged one."""
        return product(self)


def product(sizes: Iterable[Any]) -> Any:
    """The product of sizes, of which one may be ragged."""
    numbers: list[int] = []
    ragged: Any = 1
    for n in sizes:
        if isinstance(n, NestedInt):
            ragged = n
        else:
            numbers.append(n)
    return math.prod(numbers) * ragged
