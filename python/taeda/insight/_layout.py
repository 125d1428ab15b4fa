"""A layered layout of boxes and the arrows between them, from top to bottom.

The method of Sugiyama, Tagawa and Toda: boxes get layers such that arrows point downwards; arrows
that pass layers get a place in each; the boxes of a layer are ordered by the places of what they
are connected with, and then moved as close to these as their widths allow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

GAP = 36.0  # between boxes of a layer
PASSING = 30.0  # the width of an arrow that passes a layer


@dataclass
class Box:
    """A rectangle to place; `x` and `y` are its upper left corner."""

    key: int
    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        """The x in the middle."""
        return self.x + self.width / 2


@dataclass
class Arrow:
    """A way from a box to another, by the points in `bends`."""

    start: int
    stop: int
    bends: list[tuple[float, float]] = field(default_factory=list)


def is_column(boxes: list[Box], arrows: list[Arrow]) -> bool:
    """Whether the boxes are a chain, for which there is one layout."""
    pairs = {(arrow.start, arrow.stop) for arrow in arrows}
    return pairs == {(a.key, b.key) for a, b in itertools.pairwise(boxes)}


def _layers(boxes: dict[int, Box], arrows: list[Arrow]) -> None:
    """Give each box the least layer below all that lead to it."""
    before: dict[int, list[int]] = {key: [] for key in boxes}
    for arrow in arrows:
        before[arrow.stop].append(arrow.start)
    for key in boxes:  # those that an arrow leads from come first
        boxes[key].layer = max((boxes[k].layer + 1 for k in before[key]), default=0)
    # What nothing leads to comes right above what it leads to.
    for key in reversed(list(boxes)):
        after = [boxes[a.stop].layer for a in arrows if a.start == key]
        if not before[key] and after:
            boxes[key].layer = min(after) - 1


def layered(boxes: list[Box], arrows: list[Arrow], gap: float = 64.0) -> tuple[float, float]:
    """Place boxes and bend arrows.

    Args:
        boxes: in an order in which each comes after those that arrows lead from to it.
        arrows: between different boxes.
        gap: between layers.

    Returns:
        the width and the height of the whole.
    """
    by_key = {box.key: box for box in boxes}
    _layers(by_key, arrows)
    rows: list[list[Box]] = [[] for _ in range(max((b.layer for b in boxes), default=-1) + 1)]
    links: list[tuple[Box, Box]] = []
    chains: list[list[Box]] = []
    for box in boxes:
        rows[box.layer].append(box)
    spare = -1
    for arrow in arrows:
        start, stop = by_key[arrow.start], by_key[arrow.stop]
        chain = [start]
        for layer in range(start.layer + 1, stop.layer):
            passing = Box(spare, PASSING, 0.0, layer)
            spare -= 1
            rows[layer].append(passing)
            chain.append(passing)
        chain.append(stop)
        chains.append(chain)
        links += itertools.pairwise(chain)
    above: dict[int, list[Box]] = {}
    below: dict[int, list[Box]] = {}
    for one, other in links:
        below.setdefault(one.key, []).append(other)
        above.setdefault(other.key, []).append(one)
    _order(rows, above, below)
    _spread(rows, above, below)
    top = 0.0
    for row in rows:
        height = max(box.height for box in row)
        for box in row:
            box.y = top + (height - box.height) / 2
        top += height + gap
    left = min((box.x for row in rows for box in row), default=0.0)
    for row in rows:
        for box in row:
            box.x -= left
    tops = [min(b.y for b in row) for row in rows]
    ends = [max(b.y + b.height for b in row) for row in rows]
    for arrow, chain in zip(arrows, chains, strict=True):
        arrow.bends.clear()
        for box in chain[1:-1]:
            arrow.bends += [(box.middle, tops[box.layer]), (box.middle, ends[box.layer])]
    width = max((box.x + box.width for row in rows for box in row), default=0.0)
    return width, max(0.0, top - gap)


def _order(rows: list[list[Box]], above: dict[int, list[Box]], below: dict[int, list[Box]]) -> None:
    for sweep in range(8):
        neighbours = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            place = {box.key: i for r in rows for i, box in enumerate(r)}
            mean = {}
            for i, box in enumerate(row):
                near = [place[other.key] for other in neighbours.get(box.key, [])]
                mean[box.key] = sum(near) / len(near) if near else float(i)
            row.sort(key=lambda box: mean[box.key])


def _spread(
    rows: list[list[Box]], above: dict[int, list[Box]], below: dict[int, list[Box]]
) -> None:
    for row in rows:
        x = 0.0
        for box in row:
            box.x = x
            x += box.width + GAP
        for box in row:
            box.x -= (x - GAP) / 2
    for sweep in range(16):
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = []
            for box in row:
                near = [*above.get(box.key, []), *below.get(box.key, [])]
                middle = sum(o.middle for o in near) / len(near) if near else box.middle
                wanted.append(middle - box.width / 2)
            _place(row, wanted)


def _place(row: list[Box], wanted: list[float]) -> None:
    """Move the boxes of a row near where they are wanted, in order and without overlap."""
    blocks: list[list[float]] = []  # sum of wanted offsets, count, width so far
    for box, x in zip(row, wanted, strict=True):
        blocks.append([x, 1.0, box.width + GAP])
        while len(blocks) > 1:
            (total, count, width), last = blocks[-2], blocks[-1]
            if total / count + width <= last[0] / last[1]:
                break
            # The boxes of two blocks that would overlap stand side by side.
            joined = [total + last[0] - width * last[1], count + last[1], width + last[2]]
            blocks[-2:] = [joined]
    at = iter(row)
    for total, count, _ in blocks:
        x = total / count
        for _ in range(int(count)):
            box = next(at)
            box.x = x
            x += box.width + GAP
