"""SVG: shapes with classes, in the colours of a light and of a dark page."""

from __future__ import annotations

import itertools
from html import escape

FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"

BEND = 0.3  # which part of the way down an arrow takes for turning aside, at each end
HEAD = 7.0  # how far a line stays behind the tip of its arrow's head

# Background, text, faint text, box, edge of a box, forward, gradient, optimizer, its box, warning.
_LIGHT = {
    "page": "#ffffff", "text": "#1c2330", "faint": "#5b6472", "box": "#f3f6fb",
    "edge": "#9aa7ba", "flow": "#2f6fde", "grad": "#d9600f", "opt": "#6d3fc4",
    "optbox": "#f4effc", "bad": "#c42222", "chip": "#ffffff",
}  # fmt: skip
_DARK = {
    "page": "#14181f", "text": "#e6eaf1", "faint": "#a0a9b8", "box": "#212937",
    "edge": "#56637a", "flow": "#7fb0ff", "grad": "#ff9d57", "opt": "#bd9cff",
    "optbox": "#2a2340", "bad": "#ff7b7b", "chip": "#1a202b",
}  # fmt: skip


def _rules(c: dict[str, str], scope: str) -> str:
    """The style of each class, within an element."""
    rules = {
        "page": f"fill:{c['page']}",
        "box": f"fill:{c['box']};stroke:{c['edge']};stroke-width:1.2",
        "cut": f"fill:none;stroke:{c['bad']};stroke-width:1.2;stroke-dasharray:5 4",
        "chip": f"fill:{c['chip']};stroke:{c['opt']};stroke-width:1",
        "lost": f"fill:{c['chip']};stroke:{c['bad']};stroke-width:1.2;stroke-dasharray:5 4",
        "opt": f"fill:{c['optbox']};stroke:{c['opt']};stroke-width:1.4",
        "title": f"fill:{c['text']};font-weight:600",
        "text": f"fill:{c['text']}",
        "faint": f"fill:{c['faint']}",
        "bad": f"fill:{c['bad']}",
        "flow": f"stroke:{c['flow']};stroke-width:1.6;fill:none",
        "grad": f"stroke:{c['grad']};stroke-width:1.4;fill:none;stroke-dasharray:6 3",
        "step": f"stroke:{c['opt']};stroke-width:1.2;fill:none",
        "flowhead": f"fill:{c['flow']}",
        "gradhead": f"fill:{c['grad']}",
        "stephead": f"fill:{c['opt']}",
        "shape": f"fill:{c['flow']}",
        "halo": f"fill:{c['page']}",
    }
    return "".join(f"{scope} .{name}{{{style}}}" for name, style in rules.items())


def width_of(text: str, size: float = 12.0) -> float:
    """About how wide a text is, generously."""
    narrow = sum(text.count(c) for c in "iljtf.,:;|' ()[]")
    return (len(text) - narrow) * size * 0.62 + narrow * size * 0.36


class Drawing:
    """Collects shapes; `text` gives the file.

    Args:
        name: an identifier that no other picture on a page has.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: list[str] = []

    def rectangle(
        self, x: float, y: float, width: float, height: float, kind: str, radius: float = 7
    ) -> None:
        """A rectangle with round corners."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius:g}" class="{kind}"/>'
        )

    def write(
        self, x: float, y: float, text: str, kind: str, size: float = 12, anchor: str = "middle"
    ) -> None:
        """A line of text; `y` is its base line."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" font-size="{size:g}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def label(self, x: float, y: float, text: str, kind: str, size: float = 11) -> None:
        """A text with the page's colour behind it, for the middle of an arrow."""
        width = width_of(text, size)
        self.rectangle(x - width / 2 - 2, y - size + 1, width + 4, size + 3, "halo", 3)
        self.write(x, y, text, kind, size)

    def arrow(self, points: list[tuple[float, float]], kind: str, sideways: bool = False) -> None:
        """A smooth arrow through points; it ends downwards or upwards, or `sideways`."""
        (x0, y0), (x1, y1) = points[-2:]
        ux = (1.0 if x1 > x0 else -1.0) if sideways else 0.0
        uy = 0.0 if sideways else (1.0 if y1 > y0 else -1.0)
        ends = [*points[:-1], (x1 - HEAD * ux, y1 - HEAD * uy)]
        path = f"M{ends[0][0]:.1f},{ends[0][1]:.1f}"
        if not sideways:  # as straight at its beginning as in its head
            x, y = points[0]
            ends[0] = (x, y + HEAD * (1.0 if points[1][1] > y else -1.0))
            path += f" L{ends[0][0]:.1f},{ends[0][1]:.1f}"
        for (ax, ay), (bx, by) in itertools.pairwise(ends):
            if sideways:
                middle = (ax + bx) / 2
                path += f" C{middle:.1f},{ay:.1f} {middle:.1f},{by:.1f} {bx:.1f},{by:.1f}"
            else:
                bend = BEND * (by - ay)
                path += f" C{ax:.1f},{ay + bend:.1f} {bx:.1f},{by - bend:.1f} {bx:.1f},{by:.1f}"
        self._parts.append(f'<path d="{path}" class="{kind}"/>')
        self._head(x1, y1, ux, uy, kind)

    def elbow(self, points: list[tuple[float, float]], kind: str, head: bool = True) -> None:
        """Straight lines through points, with an arrow's head at the end."""
        (x0, y0), (x1, y1) = points[-2:]
        ux = 0.0 if abs(x1 - x0) < abs(y1 - y0) else (1.0 if x1 > x0 else -1.0)
        uy = 0.0 if ux else (1.0 if y1 > y0 else -1.0)
        ends = [*points[:-1], (x1 - HEAD * ux, y1 - HEAD * uy)] if head else points
        path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in ends)
        self._parts.append(f'<path d="{path}" class="{kind}" stroke-linejoin="round"/>')
        if head:
            self._head(x1, y1, ux, uy, kind)

    def _head(self, x: float, y: float, ux: float, uy: float, kind: str) -> None:
        corners = [
            (x, y),
            (x - 8 * ux + 4 * uy, y - 8 * uy + 4 * ux),
            (x - 8 * ux - 4 * uy, y - 8 * uy - 4 * ux),
        ]
        shown = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        self._parts.append(f'<polygon points="{shown}" class="{kind}head"/>')

    def text(self, width: float, height: float, theme: str) -> str:
        """The file: for a "light" or a "dark" page, or "auto" for what the reader prefers."""
        scope = f"#{self.name}"
        style = _rules(_DARK if theme == "dark" else _LIGHT, scope)
        if theme == "auto":
            style += f"@media (prefers-color-scheme: dark){{{_rules(_DARK, scope)}}}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" id="{self.name}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f'style="max-width:100%;height:auto" font-family="{FONT}"><style>{style}</style>'
            f'<rect width="{width:.0f}" height="{height:.0f}" class="page"/>'
            f"{''.join(self._parts)}</svg>\n"
        )
