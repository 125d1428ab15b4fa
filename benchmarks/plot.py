"""A plot of the ratios: a band for each group, a dot for each case."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from benchmarks.report import geometric_mean, threads_text

COLOURS = ("#0b6e8a", "#d1731f", "#6a4c93", "#4d7c0f")


def why_not() -> str | None:
    """Why there will be no plot, if so."""
    if importlib.util.find_spec("matplotlib"):
        return None
    return "no plot: matplotlib is not installed (pip install matplotlib)"


def write(path: Path, ratios: dict[str, dict[int, list[float]]]) -> None:
    """Draws {group: {threads: ratios}} into an SVG file. A bar marks each geometric mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "taeda"  # the same file for the same figures
    counts = sorted({count for group in ratios.values() for count in group})
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.8 * len(ratios)), layout="constrained")
    for place, group in enumerate(ratios.values()):
        for index, count in enumerate(counts):
            values = group.get(count, [])
            if not values:
                continue
            height = place + (index - (len(counts) - 1) / 2) * 0.32
            colour = COLOURS[index % len(COLOURS)]
            label = threads_text(count) if place == 0 else None
            axes.scatter(values, [height] * len(values), s=14, color=colour, alpha=0.5, label=label)
            axes.scatter(
                geometric_mean(values), height, s=260, marker="|", color=colour, linewidth=2
            )
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("PyTorch time / taeda time (right of 1: taeda is faster; bar: geometric mean)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(ratios)), list(ratios))
    axes.set_ylim(len(ratios) - 0.5, -0.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper right", ncols=len(counts), frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
