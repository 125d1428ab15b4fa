"""Where the sequences of a nested tensor begin and end, shared by all that have the same."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._symbol import NestedInt

_ops = _C.ops
_numbers = itertools.count(1)
_known: weakref.WeakValueDictionary[tuple[int, int], Ragged] = weakref.WeakValueDictionary()


def _version(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version


class Ragged:
    """Sequences that lie one after the other in a dimension of some values.

    Sequence i has the elements from ``offsets[i]`` on: up to ``offsets[i + 1]``, or as many as
    ``lengths[i]`` says, which leaves holes. What is computed of them is kept, by device.
    """

    def __init__(
        self,
        offsets: Tensor,
        lengths: Tensor | None = None,
        shortest: int | None = None,
        longest: int | None = None,
    ) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(next(_numbers))
        self._shortest, self._longest = shortest, longest
        self._counts: list[int] | None = None
        self._found: dict[Any, Any] = {}
        self._version = _version(offsets)
        self._packed: Ragged | None = None
        _known[id(offsets), id(lengths)] = self

    def __len__(self) -> int:
        return self.offsets.size(0) - 1

    def offsets_on(self, device: Any) -> Tensor:
        """The offsets on a device."""
        return self._kept("offsets", device, lambda: self.offsets.to(device))

    def lengths_on(self, device: Any) -> Tensor | None:
        """The lengths that were given, on a device."""
        lengths = self.lengths
        if lengths is None:
            return None
        return self._kept("lengths", device, lambda: lengths.to(device))

    def _kept(self, what: str, device: Any, make: Any) -> Any:
        key = what, str(device)
        if key not in self._found:
            # Kept also where it is first asked for in inference mode, for gradients later.
            with taeda.inference_mode(False), taeda.no_grad():
                self._found[key] = make()
        return self._found[key]

    @property
    def starts(self) -> list[int]:
        """Where each sequence begins, and the end of the last."""
        return self._kept("starts", "", self.offsets.tolist)

    @property
    def counts(self) -> list[int]:
        """The length of each sequence."""
        if self._counts is None:
            if self.lengths is not None:
                self._counts = self.lengths.tolist()
            else:
                starts = self.starts
                self._counts = [b - a for a, b in itertools.pairwise(starts)]
        return self._counts

    @property
    def longest(self) -> int:
        """The length of the longest sequence."""
        if self._longest is None:
            self._longest = max(self.counts, default=0)
        return self._longest

    @property
    def shortest(self) -> int:
        """The length of the shortest sequence."""
        if self._shortest is None:
            self._shortest = min(self.counts, default=0)
        return self._shortest

    @property
    def is_regular(self) -> bool:
        """Whether all sequences are of one length, which is not 0 and that of the longest."""
        return self._kept("regular", "", lambda: set(self.counts) == {self.longest or -1})

    def covers(self, total: int) -> bool:
        """Whether the sequences are all of ``total`` elements, without holes."""
        starts = self.starts
        return self.lengths is None and starts[0] == 0 and starts[-1] == total

    def is_same(self, other: Ragged) -> bool:
        """Whether sequences have the same lengths and places."""
        if self is other:
            return True
        return self.starts == other.starts and self.counts == other.counts

    # ---- indices, of all sequences' elements one after the other ----

    def _lengths(self, device: Any) -> Tensor:
        lengths = self.lengths_on(device)
        return self.offsets_on(device).diff() if lengths is None else lengths

    def rows(self, device: Any) -> Tensor:
        """The number of the sequence that each element belongs to."""
        return self._kept(
            "rows",
            device,
            lambda: _ops.repeat_interleave(
                _ops.arange(len(self), device=device), self._lengths(device).long()
            ),
        )

    def positions(self, device: Any) -> Tensor:
        """Where each element is within its sequence."""

        def make() -> Tensor:
            lengths = self._lengths(device).long()
            begins = lengths.cumsum(0) - lengths
            return _ops.arange(sum(self.counts), device=device) - begins[self.rows(device)]

        return self._kept("positions", device, make)

    def sources(self, device: Any) -> Tensor:
        """Where each element is in the values."""

        def make() -> Tensor:
            starts = self.offsets_on(device).long()[:-1]
            return starts[self.rows(device)] + self.positions(device)

        return self._kept("sources", device, make)

    def cells(self, width: int, device: Any) -> Tensor:
        """Where each element is in rows of ``width`` that are padded."""
        return self._kept(
            f"cells {width}",
            device,
            lambda: self.rows(device) * width + self.positions(device),
        )

    def packed(self) -> Ragged:
        """Sequences of the same lengths without holes."""
        if self._packed is None:
            self._packed = of_counts(self.counts, self.offsets)
        return self._packed


def of_counts(counts: list[int], like: Tensor) -> Ragged:
    """Sequences of these lengths; ``like`` gives the offsets' dtype and device."""
    starts = list(itertools.accumulate(counts, initial=0))
    with taeda.inference_mode(False):
        made = Ragged(taeda.tensor(starts, dtype=like.dtype, device=like.device))
    made._counts = list(counts)
    return made


def of_offsets(
    offsets: Tensor, lengths: Tensor | None, shortest: int | None, longest: int | None
) -> Ragged:
    """The sequences at these offsets: the same as before where the tensors are the same."""
    key = id(offsets), id(lengths)
    found = _known.get(key)
    same = found is not None and found.offsets is offsets and found.lengths is lengths
    if found is None or not same or found._version != _version(offsets):
        found = Ragged(offsets, lengths, shortest, longest)
    return found
