"""What has changed between two versions of a network's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import taeda
from taeda.functional._parameters import Parameters

__all__ = ["Change", "Difference"]


class Change(NamedTuple):
    """How far a tensor is from what it was.

    Attributes:
        norm: the 2-norm of the change.
        relative: that norm over the old tensor's; infinite where that was all zeros.
        largest: the largest change of an element.
        elements: how many elements have changed.
        of: how many there are.
    """

    norm: float
    relative: float
    largest: float
    elements: int
    of: int


class Difference(Mapping[str, Change]):
    """For each name that two versions have in common, what has changed; prints as a table.

    Attributes:
        changed: the names of tensors that differ.
        added: names that only the new version has.
        removed: names that only the old one has.

    Raises:
        ValueError: a tensor's shape has changed.

    >>> old = taeda.functional.Parameters({"w": taeda.tensor([3.0, 4.0]), "b": taeda.zeros(1)})
    >>> print(old.replace({"w": taeda.tensor([3.0, 5.0])}).diff(old))
    name  change  relative  largest  elements
    w          1       0.2        1    1 of 2
    b          0         0        0    0 of 1
    """

    def __init__(self, old: Parameters, new: Parameters) -> None:
        old._unchanged("diff")
        new._unchanged("diff")
        self.added = tuple(name for name in new if name not in old)
        self.removed = tuple(name for name in old if name not in new)
        self._changes = {name: _change(name, old, new) for name in new if name in old}
        self.changed = tuple(name for name, change in self._changes.items() if change.elements)

    def __getitem__(self, name: str) -> Change:
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        rows = [("name", "change", "relative", "largest", "elements")]
        for name, c in self._changes.items():
            numbers = (f"{value:.3g}" for value in (c.norm, c.relative, c.largest))
            rows.append((name, *numbers, f"{c.elements} of {c.of}"))  # type: ignore[arg-type]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in _paired(row, widths)])
            for row in rows
        ]
        lines += [f"{name}  added" for name in self.added]
        lines += [f"{name}  removed" for name in self.removed]
        return "\n".join(lines)


def _paired(row: tuple[str, ...], widths: list[int]) -> list[tuple[str, int]]:
    return list(zip(row[1:], widths[1:], strict=True))


def _change(name: str, old: Parameters, new: Parameters) -> Change:
    before, after = old._all[name].detach(), new._all[name].detach()
    if before.shape != after.shape:
        raise ValueError(
            f"diff: {name!r} had shape {tuple(before.shape)} and has {tuple(after.shape)} now"
        )
    if not before.numel():
        return Change(0.0, 0.0, 0.0, 0, 0)
    wide = taeda.complex128 if after.is_complex() else taeda.float64
    moved = after.to(wide) - before.to(wide)
    norm, size = moved.norm().item(), before.to(wide).norm().item()
    relative = norm / size if size else (float("inf") if norm else 0.0)
    differing = int((after != before).sum().item())
    return Change(norm, relative, moved.abs().max().item(), differing, before.numel())
