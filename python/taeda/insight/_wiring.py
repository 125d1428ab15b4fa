"""`wiring`: a picture of what binds a loss, a model and an optimizer."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ._context import Context
from ._edge_routing import PAIR, Labels, Point, routes, sampled
from ._explain import check_arguments
from ._graphviz import executable, placed
from ._groups import Group, Link, fold
from ._layout import Arrow, Box, is_column, layered
from ._svg import Drawing, width_of
from ._table import count

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.nn import Module
    from taeda.optim import Optimizer

Theme = Literal["auto", "light", "dark"]
Layout = Literal["auto", "graphviz", "own"]

GAP = 56.0  # between layers
TOP, LEFT, LINE = 60.0, 24.0, 17.0
CHIP = 168.0  # the width of what shows parameters


@dataclass(frozen=True)
class Rectangle:
    """A box of the picture, for programs.

    Attributes:
        title: its first line.
        kind: "module", "loss", "parameters", "unreached" or "optimizer".
    """

    title: str
    kind: str
    x: float
    y: float
    width: float
    height: float


class Wiring:
    """A picture that `wiring` drew: shown by notebooks, and saved by `save`.

    Attributes:
        boxes: the rectangles in it.
        width: in pixels.
        height: in pixels.
    """

    def __init__(self, context: Context, depth: int | None, layout: Layout) -> None:
        self._context = context
        groups, links = fold(context, depth)
        self._drawing = Drawing("wiring")
        self.boxes: list[Rectangle] = []
        boxes = [Box(g.key, _width(g), 30 + LINE * max(1, len(g.words()))) for g in groups]
        arrows = [Arrow(link.start, link.stop) for link in links]
        width, height = _laid_out(boxes, arrows, layout)
        by_key = {box.key: box for box in boxes}
        for box in boxes:
            box.x, box.y = box.x + LEFT, box.y + TOP + 44
        for arrow in arrows:
            arrow.bends = [(x + LEFT, y + TOP + 44) for x, y in arrow.bends]
        self._arrows(boxes, arrows, links)
        right = LEFT + width + 70
        chips = self._groups(groups, by_key, right)
        bottom = TOP + 44 + height
        bottom = max(bottom, *(chip.y + chip.height for chip, _ in chips)) if chips else bottom
        bottom = self._unreached(bottom)
        self.width = right + CHIP + LEFT
        bottom = self._optimizers(chips, right + CHIP + 64, bottom)
        self.height = bottom + 24
        self._legend()
        content = self._drawing.text(self.width, self.height, "light")
        self._drawing.name = f"wiring{zlib.crc32(content.encode()):08x}"

    def svg(self, theme: Theme = "auto") -> str:
        """The picture as SVG.

        Args:
            theme: for a "light" or a "dark" page; "auto" follows what the reader prefers.

        Raises:
            ValueError: it is something else.
        """
        if theme not in ("auto", "light", "dark"):
            raise ValueError(f"svg(): theme must be 'auto', 'light' or 'dark', got {theme!r}")
        return self._drawing.text(self.width, self.height, theme)

    def save(self, path: str | os.PathLike[str], theme: Theme = "auto") -> None:
        """Write the picture to an SVG file, in the colours of a `theme`."""
        text = self.svg(theme)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        titles = [box.title for box in self.boxes if box.kind in ("module", "loss")]
        return f"<wiring: {' > '.join(titles)}; .save('wiring.svg') shows it>"

    # ---- parts of the picture -------------------------------------------------------------------

    def _box(self, kind: str, style: str, lines: list[str], where: Box) -> None:
        self._drawing.rectangle(where.x, where.y, where.width, where.height, style)
        start = where.y + where.height / 2 - (len(lines) - 1) * LINE / 2 + 4
        for i, line in enumerate(lines):
            look, size = ("title", 13.0) if i == 0 else ("faint", 11.5)
            self._drawing.write(where.middle, start + i * LINE, line, look, size)
        self.boxes.append(Rectangle(lines[0], kind, where.x, where.y, where.width, where.height))

    def _arrows(self, boxes: list[Box], arrows: list[Arrow], links: list[Link]) -> None:
        """Values down, their gradients up beside them, and the shapes where there is room."""
        ways = routes(boxes, arrows)
        labels = Labels([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
        for way in ways:
            for kind, shift in (("flow", -PAIR), ("grad", PAIR)):
                points = [(x + shift, y) for x, y in way]
                labels.lines += sampled(points, 20)
                self._drawing.arrow(points if kind == "flow" else points[::-1], kind)
        for way, link in zip(ways, links, strict=True):
            if link.shapes:
                self._label(labels, way, link)

    def _label(self, labels: Labels, way: list[Point], link: Link) -> None:
        text = "x".join(map(str, link.shapes[0])) or "number"
        if len(link.shapes) > 1:
            text += f" and {len(link.shapes) - 1} more"
        x, y = labels.place(way, text, 11)
        self._drawing.label(x, y + 4, text, "shape")

    def _groups(
        self, groups: list[Group], by_key: dict[int, Box], right: float
    ) -> list[tuple[Box, list[Any]]]:
        """Draw the boxes, and beside them what shows their parameters, which it returns."""
        chips: list[tuple[Box, list[Any]]] = []
        free = TOP
        for group in sorted(groups, key=lambda g: (by_key[g.key].y, by_key[g.key].x)):
            box = by_key[group.key]
            kind = "loss" if group.path == "loss" else "module"
            self._box(kind, "box", [group.title, *group.words()], box)
            if group.has_input and kind == "module":
                self._drawing.write(box.middle, box.y - 32, "data", "faint", 11.5)
                self._drawing.arrow([(box.middle, box.y - 27), (box.middle, box.y)], "flow")
            if group.parameters:
                chip = self._chip(group, box, right, free)
                free = chip.y + chip.height + 10
                chips.append((chip, group.parameters))
                inner = [b for b in by_key.values() if b.layer == box.layer and b.x > box.x]
                self._to_chip(box, chip, bool(inner))
        return chips

    def _chip(self, group: Group, box: Box, x: float, free: float) -> Box:
        lines = self._parameter_lines(group.parameters)
        height = 14 + LINE * len(lines)
        chip = Box(group.key, CHIP, height, 0, x, max(free, box.y + box.height / 2 - height / 2))
        held = self._held(group.parameters)
        self._drawing.rectangle(x, chip.y, CHIP, height, "chip" if held else "lost", 5)
        for i, line in enumerate(lines):
            look = "bad" if line.startswith("not in") else "text"
            self._drawing.write(x + 10, chip.y + 19 + i * LINE, line, look, 11.5, "start")
        self.boxes.append(Rectangle(lines[0], "parameters", x, chip.y, CHIP, height))
        return chip

    def _to_chip(self, box: Box, chip: Box, behind: bool) -> None:
        """The gradient's way from a module to its parameters, over what is between them."""
        end = (chip.x, chip.y + chip.height / 2)
        if behind:
            x, y = box.x + box.width - 14, box.y - 12
            turn = chip.x - 22
            self._drawing.elbow([(x, box.y), (x, y), (turn, y), (turn, end[1]), end], "grad")
        else:
            self._drawing.arrow([(box.x + box.width, box.y + box.height / 2), end], "grad", True)

    def _held(self, parameters: list[Any]) -> bool:
        return not self._context.optimizers or all(id(p) in self._context.held for p in parameters)

    def _parameter_lines(self, parameters: list[Any]) -> list[str]:
        if len(parameters) <= 2:
            lines = []
            for p in parameters:
                name = (
                    self._context.name(p).rpartition(".")[2] if id(p) in self._context.named else ""
                )
                shape = "x".join(map(str, p.shape)) or "number"
                shared = ", shared" if len(self._context.graph.module_index.names(p)) > 1 else ""
                lines.append(f"{name} {shape}{shared}".strip())
        else:
            total = sum(p.numel() for p in parameters)
            lines = [f"{len(parameters)} parameters", f"{count(total)} numbers"]
        if not self._held(parameters):
            one = len(self._context.optimizers) == 1
            lines.append("not in the optimizer" if one else "in no optimizer")
        elif not all(p.requires_grad for p in parameters):
            lines.append("frozen")
        return lines

    def _unreached(self, y: float) -> float:
        """Modules with parameters that the loss does not reach; returns where they end."""
        context = self._context
        lost = [p for p in context.trainable if not context.graph.reaches(p)]
        names: dict[str, int] = {}
        for p in lost:
            path = context.graph.module_index.owners[id(p)][0][0] or "(the model)"
            names[path] = names.get(path, 0) + 1
        y += 30 if names else 0
        for name, number in list(names.items())[:6]:
            text = f"{number} parameter{'s' if number > 1 else ''}: not reached by the loss"
            box = Box(0, max(width_of(text, 11.5), width_of(name, 13)) + 28, 47, 0, LEFT, y)
            self._box("unreached", "cut", [name, text], box)
            y += 57
        if len(names) > 6:
            self._drawing.write(LEFT, y, f"and {len(names) - 6} more", "faint", 11.5, "start")
            y += 20
        return y

    def _optimizers(self, chips: list[tuple[Box, list[Any]]], x: float, bottom: float) -> float:
        """The optimizers, one below the other; returns where they end."""
        y = float(TOP)
        held = [
            {id(p) for group in optimizer.param_groups for p in group["params"]}
            for optimizer in self._context.optimizers
        ]
        holders = [
            [n for n, ids in enumerate(held) if any(id(p) in ids for p in parameters)]
            for _, parameters in chips
        ]
        for number, optimizer in enumerate(self._context.optimizers):
            ids = held[number]
            own = [(c, h) for (c, _), h in zip(chips, holders, strict=True) if number in h]
            lines = self._optimizer_lines(optimizer, ids, chips)
            height = 26 + LINE * len(lines)
            width = max(150.0, *(width_of(line, 11.5) + 28 for line in lines))
            middle = [chip.y + chip.height / 2 for chip, _ in own]
            if middle:
                y = max(y, (min(middle) + max(middle)) / 2 - height / 2)
            # One line down beside the parameters, from which a branch leads to each.
            trunk, turns = x - 28 - 10 * min(number, 3), [y + height / 2]
            for chip, several in own:
                beside = 12 * (several.index(number) - (len(several) - 1) / 2)
                turns.append(chip.y + chip.height / 2 + beside)
                end = (chip.x + chip.width, turns[-1])
                self._drawing.elbow([(trunk, turns[-1]), end], "step")
            if own:
                self._drawing.elbow([(trunk, min(turns)), (trunk, max(turns))], "step", False)
                self._drawing.elbow([(x, turns[0]), (trunk, turns[0])], "step", False)
            self._box("optimizer", "opt", lines, Box(number, width, height, 0, x, y))
            self.width = max(self.width, x + width + LEFT)
            bottom = max(bottom, y + height)
            y += height + 24
        return bottom

    def _optimizer_lines(
        self, optimizer: Optimizer, ids: set[int], chips: list[tuple[Box, list[Any]]]
    ) -> list[str]:
        lines = [type(optimizer).__name__]
        for i, group in enumerate(optimizer.param_groups):
            options = [f"lr={float(group['lr']):g}"] if group.get("lr") is not None else []
            options += [f"{len(group['params'])} tensors"]
            lines.append(f"group {i}: {', '.join(options)}" if i < 6 else "...")
            if i == 6:
                break
        known = {id(p) for _, parameters in chips for p in parameters} | set(self._context.named)
        if strange := ids - known:
            lines += [f"{len(strange)} of them not", "of the model"]
        return lines

    def _legend(self) -> None:
        draw, x = self._drawing, LEFT
        entries = [("flow", "values"), ("grad", "gradients, by loss.backward()")]
        if self._context.optimizers:
            entries.append(("step", "changes, by optimizer.step()"))
        for kind, text in entries:
            draw.arrow([(x, 24.0), (x + 30, 24.0)], kind, True)
            draw.write(x + 38, 28, text, "faint", 11.5, "start")
            x += 38 + width_of(text, 11.5) + 26
        self.width = max(self.width, x)


def _width(group: Group) -> float:
    title = width_of(group.title, 13) * 1.1  # the heavier letters are wider
    return max(120.0, 28 + max([title, *(width_of(line, 11.5) for line in group.words())]))


def _laid_out(boxes: list[Box], arrows: list[Arrow], layout: Layout) -> tuple[float, float]:
    """Place the boxes; returns the width and the height."""
    if layout == "graphviz":
        return placed(boxes, arrows, GAP)
    if layout == "auto" and executable() is not None and not is_column(boxes, arrows):
        try:
            return placed(boxes, arrows, GAP)
        except RuntimeError:  # a broken installation does not keep a picture from being drawn
            pass
    return layered(boxes, arrows, gap=GAP)


def wiring(
    loss: Tensor,
    model: Module | None = None,
    optimizer: Optimizer | Iterable[Optimizer] | None = None,
    *,
    depth: int | None = None,
    layout: Layout = "auto",
) -> Wiring:
    """Draw what binds a loss, a model and an optimizer.

    Modules are boxes, with the operations in them; arrows say which shapes flow between them, and,
    in a second colour, how gradients flow back to the parameters, which stand beside the modules
    with the optimizer that changes them. What the loss does not reach, and what the optimizer does
    not hold, is outlined by dashes.

    Args:
        loss: before ``backward()``; afterwards shapes are no longer known.
        model: the module whose parts are drawn; single operations if it is None.
        optimizer: what updates its parameters; several optimizers, where each has some of them.
        depth: down to which level modules are opened; as far as fits on a page by default.
        layout: what places the boxes: "graphviz" (its ``dot`` must be on the PATH), taeda's "own"
            layered layout, or "auto", graphviz where it is installed and the boxes are not simply
            one below the other. The drawing is the same.

    Returns:
        A `Wiring`: notebooks show it, ``save("wiring.svg")`` writes it.

    Raises:
        TypeError: an argument is not what it should be.
        ValueError: ``depth`` is less than 1, or ``layout`` is something else.
        RuntimeError: ``layout`` is "graphviz", which is not installed or fails.

    >>> model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.ReLU(), taeda.nn.Linear(8, 1))
    >>> taeda.wiring(model(taeda.ones(5, 4)).mean(), model)
    <wiring: 0: Linear > 1: ReLU > 2: Linear > loss; .save('wiring.svg') shows it>
    """
    optimizers = check_arguments("wiring", loss, model, optimizer)
    if depth is not None and depth < 1:
        raise ValueError(f"wiring(): depth must be at least 1, got {depth}")
    if layout not in ("auto", "graphviz", "own"):
        raise ValueError(f"wiring(): layout must be 'auto', 'graphviz' or 'own', got {layout!r}")
    return Wiring(Context.of(loss, model, optimizers), depth, layout)
