"""Where arrows leave and enter boxes, and where their labels have room."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ._layout import Arrow, Box
from ._svg import BEND, HEAD, width_of

Point = tuple[float, float]

PAIR = 7.0  # values are drawn this far left of a route, and gradients as far right of it
SPACING = 34.0  # between routes that leave or enter a box side by side


def routes(boxes: list[Box], arrows: list[Arrow]) -> list[list[Point]]:
    """The points that each arrow passes, its ends spread over the edges of the boxes."""
    by_key = {box.key: box for box in boxes}
    starts = _spread(boxes, [(a.start, _towards(a, by_key)) for a in arrows])
    stops = _spread(boxes, [(a.stop, _from(a, by_key)) for a in arrows])
    found = []
    for arrow, x, other in zip(arrows, starts, stops, strict=True):
        start, stop = by_key[arrow.start], by_key[arrow.stop]
        found.append([(x, start.y + start.height), *arrow.bends, (other, stop.y)])
    return found


def _towards(arrow: Arrow, boxes: dict[int, Box]) -> float:
    return arrow.bends[0][0] if arrow.bends else boxes[arrow.stop].middle


def _from(arrow: Arrow, boxes: dict[int, Box]) -> float:
    return arrow.bends[-1][0] if arrow.bends else boxes[arrow.start].middle


def _spread(boxes: list[Box], ends: list[tuple[int, float]]) -> list[float]:
    """The x of each end at its box, in the order of where the arrows come from or lead to."""
    found = [0.0] * len(ends)
    for box in boxes:
        own = sorted((x, i) for i, (key, x) in enumerate(ends) if key == box.key)
        step = min(SPACING, (box.width - 2 * PAIR) / max(1, len(own)))
        for place, (_, i) in enumerate(own):
            found[i] = box.middle + (place - (len(own) - 1) / 2) * step
    return found


def sampled(points: list[Point], steps: int = 10) -> list[Point]:
    """Points on the smooth line that is drawn downwards through `points`."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    inner = [(x0, y0 + HEAD), *points[1:-1], (x1, y1 - HEAD)]
    found = [points[0], inner[0]]
    for (ax, ay), (bx, by) in itertools.pairwise(inner):
        for i in range(1, steps + 1):
            t = i / steps
            across = t * t * (3 - 2 * t)
            down = 3 * t * (1 - t) * (BEND * (1 - t) + (1 - BEND) * t) + t**3
            found.append((ax + (bx - ax) * across, ay + (by - ay) * down))
    return [*found, points[-1]]


@dataclass
class Labels:
    """Finds room for the labels of arrows.

    Attributes:
        solid: rectangles that they must not cover, as left, top, right, bottom.
        lines: points of lines that they had better not cover.
    """

    solid: list[tuple[float, float, float, float]] = field(default_factory=list)
    lines: list[Point] = field(default_factory=list)

    def place(self, route: list[Point], text: str, size: float) -> Point:
        """The middle of a label beside a route, which takes the place."""
        half, height = width_of(text, size) / 2 + 2, size + 3
        along = sampled(route)
        candidates = []
        for i, (x, y) in enumerate(along[1:-1], 1):
            far = abs(i / (len(along) - 1) - 0.5)
            candidates.append((far, x - 2 * PAIR - half, y))
            candidates.append((far + 0.3, x + 2 * PAIR + half, y))

        def cost(candidate: tuple[float, float, float]) -> float:
            far, x, y = candidate
            return far + self._hidden(x - half, y - height / 2, x + half, y + height / 2)

        _, x, y = min(candidates, key=cost)
        self.solid.append((x - half, y - height / 2, x + half, y + height / 2))
        return x, y

    def _hidden(self, left: float, top: float, right: float, bottom: float) -> float:
        """How much a label there would hide."""
        boxes = sum(left < r and right > x and top < b and bottom > y for x, y, r, b in self.solid)
        near = 3.0
        points = sum(
            left - near < x < right + near and top - near < y < bottom + near for x, y in self.lines
        )
        return 100.0 * (boxes + (left < 0)) + points
