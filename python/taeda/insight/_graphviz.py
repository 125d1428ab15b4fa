"""Places for boxes from graphviz, where its ``dot`` is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from ._layout import GAP, PASSING, Arrow, Box

Point = tuple[float, float]

SECONDS = 20.0  # after which a layout is given up
INCH = 72.0


def executable() -> str | None:
    """The path of ``dot``, or None if it is not installed."""
    return shutil.which("dot")


def placed(boxes: list[Box], arrows: list[Arrow], gap: float) -> tuple[float, float]:
    """Do what `layered` does, by graphviz.

    Returns:
        the width and the height of the whole.

    Raises:
        RuntimeError: ``dot`` is not installed, fails, or says what cannot be read.
    """
    path = executable()
    if path is None:
        raise RuntimeError("graphviz is not installed: there is no `dot` on the PATH")
    if not boxes:
        return 0.0, 0.0
    try:
        done = subprocess.run(
            [path, "-Tplain"],
            input=_source(boxes, arrows, gap),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return _read(done.stdout, boxes, arrows)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise RuntimeError(f"{path} did not lay the picture out: {error}") from error


def _source(boxes: list[Box], arrows: list[Arrow], gap: float) -> str:
    """The graph in graphviz's language; names are numbers, so that nothing needs quotes."""
    lines = [f"digraph {{ nodesep={GAP / INCH:.4f}; ranksep={gap / INCH:.4f};"]
    lines.append("node [shape=box, fixedsize=true, label=0];")
    number = {box.key: i for i, box in enumerate(boxes)}
    for box in boxes:
        size = f"width={box.width / INCH:.4f}, height={box.height / INCH:.4f}"
        lines.append(f"{number[box.key]} [{size}];")
    for i, arrow in enumerate(arrows):
        # The arrow's number is its colour, which comes back with its points.
        lines.append(f'{number[arrow.start]} -> {number[arrow.stop]} [color="#{i:06x}"];')
    return "\n".join([*lines, "}"])


def _read(text: str, boxes: list[Box], arrows: list[Arrow]) -> tuple[float, float]:
    """Set the boxes' places and the arrows' bends; the y of graphviz points upwards."""
    curves: dict[int, list[Point]] = {}
    nodes = 0
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "node":
            box, nodes = boxes[int(words[0])], nodes + 1
            box.x = float(words[1]) * INCH - box.width / 2
            box.y = -float(words[2]) * INCH - box.height / 2
        elif kind == "edge":
            count = int(words[2])
            values = [float(word) * INCH for word in words[3 : 3 + 2 * count]]
            points = zip(values[::2], (-y for y in values[1::2]), strict=True)
            curves[int(words[-1].strip('"#'), 16)] = list(points)
    if nodes != len(boxes) or len(curves) != len(arrows):
        raise ValueError("its answer lacks some of the boxes or arrows")
    rows = _rows(boxes)
    by_key = {box.key: box for box in boxes}
    for i, arrow in enumerate(arrows):
        between = rows[by_key[arrow.start].layer + 1 : by_key[arrow.stop].layer]
        arrow.bends[:] = [(_at(curves[i], y), y) for row in between for y in row]
    return _to_corner(boxes, arrows)


def _to_corner(boxes: list[Box], arrows: list[Arrow]) -> tuple[float, float]:
    """Move all to where x and y begin at 0; returns the width and the height."""
    aside = [x for arrow in arrows for x, _ in arrow.bends]
    left = min([*(box.x for box in boxes), *(x - PASSING / 2 for x in aside)])
    right = max([*(box.x + box.width for box in boxes), *(x + PASSING / 2 for x in aside)])
    top = min(box.y for box in boxes)
    for box in boxes:
        box.x, box.y = box.x - left, box.y - top
    for arrow in arrows:
        arrow.bends[:] = [(x - left, y - top) for x, y in arrow.bends]
    return right - left, max(box.y + box.height for box in boxes)


def _rows(boxes: list[Box]) -> list[tuple[float, float]]:
    """Give each box its layer; returns where each layer begins and ends."""
    rows: list[tuple[float, float]] = []
    middle = float("-inf")
    for box in sorted(boxes, key=lambda b: b.y + b.height / 2):
        if box.y + box.height / 2 > middle + 1:
            middle = box.y + box.height / 2
            rows.append((box.y, box.y + box.height))
        top, end = rows[-1]
        rows[-1] = min(top, box.y), max(end, box.y + box.height)
        box.layer = len(rows) - 1
    return rows


def _at(curve: Sequence[Point], y: float) -> float:
    """The x where a curve of Bezier pieces, which runs downwards, comes to `y`."""
    piece = next((i for i in range(0, len(curve) - 4, 3) if curve[i + 3][1] >= y), len(curve) - 4)
    a, b, c, d = curve[piece : piece + 4]

    def value(t: float, axis: int) -> float:
        s = 1 - t
        parts = (s**3 * a[axis], 3 * s * s * t * b[axis], 3 * s * t * t * c[axis], t**3 * d[axis])
        return sum(parts)

    low, high = 0.0, 1.0
    for _ in range(30):
        t = (low + high) / 2
        low, high = (t, high) if value(t, 1) < y else (low, t)
    return value((low + high) / 2, 0)
