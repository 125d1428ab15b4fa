"""The picture of what `record` kept."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._record import record

MOST = 8  # lines that a panel can tell apart


def plot(run: record) -> Any:
    """A figure with four panels."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(10, 6.4), layout="constrained")
    # Notebooks show figures that pyplot did not make only once pyplot has drawn one.
    figure._repr_png_ = functools.partial(_png, figure)
    panels = figure.subplots(2, 2)
    losses = [(i, loss) for i, loss in enumerate(run.losses) if loss is not None]
    _line(panels[0, 0], losses, "loss")
    if losses and min(loss for _, loss in losses) > 0:
        panels[0, 0].set_yscale("log")
    _line(panels[0, 1], list(run.grad_norms.items()), "norm of the gradient", marker=".")
    _lines(panels[1, 0], run.ratios, "update / weight")
    panels[1, 0].axhline(1e-3, color="gray", linewidth=0.8, linestyle=":")
    if any(value > 0 for values in run.ratios.values() for value in values.values()):
        panels[1, 0].set_yscale("log")
    if run.dead:
        _lines(panels[1, 1], run.dead, "share of dead units")
        panels[1, 1].set_ylim(-0.02, 1.02)
    else:
        times = [(i, 1e3 * seconds) for i, seconds in enumerate(run.times)]
        _line(panels[1, 1], times, "time of a step, ms")
    for panel in panels[1]:
        panel.set_xlabel("step")
    return figure


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _line(panel: Any, points: list[tuple[int, float]], title: str, **style: Any) -> None:
    panel.plot([x for x, _ in points], [y for _, y in points], linewidth=1.2, **style)
    panel.set_title(title, fontsize=10)
    panel.grid(alpha=0.25)


def _lines(panel: Any, series: dict[str, dict[int, float]], title: str) -> None:
    """One line for each name; of many, those that end highest and lowest."""
    names = sorted(series, key=lambda name: list(series[name].values())[-1])
    if len(names) > MOST:
        names = names[: MOST // 2] + names[-MOST // 2 :]
    for name in series:
        if name in names:
            values = series[name]
            panel.plot(list(values), list(values.values()), marker=".", linewidth=1, label=name)
    panel.set_title(title, fontsize=10)
    panel.grid(alpha=0.25)
    if names:
        panel.legend(fontsize=7)
