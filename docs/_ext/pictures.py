"""Small pictures for the reference: the curves of activation functions, computed by taeda."""

from __future__ import annotations

import inspect
import warnings

import taeda
from tools.public_names import Name

LOW, HIGH, POINTS = -4.0, 4.0, 81
WIDTH, HEIGHT = 280, 140
# What layers that have no defaults are drawn with.
ARGUMENTS = {"Threshold": (0.5, 0.0)}


def layer_of(name: Name) -> taeda.nn.Module | None:
    """An activation with its default arguments; None for anything else."""
    value = name.value
    if name.module != "taeda.nn" or not inspect.isclass(value):
        return None
    if value.__module__.rpartition(".")[2] != "activation":
        return None
    arguments = ARGUMENTS.get(name.name, ())
    try:
        layer = value(*arguments).eval()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # softmax warns where no dimension is given
            out = layer(taeda.zeros(3))
    except (TypeError, ValueError, RuntimeError, IndexError, UserWarning):
        return None
    alone = taeda.allclose(layer(taeda.tensor([1.0, -2.0]))[:1], layer(taeda.tensor([1.0])))
    return layer if out.shape == (3,) and alone else None


def of(name: Name) -> str | None:
    """The curve of an activation and of its derivative as SVG, on one line."""
    layer = layer_of(name)
    if layer is None:
        return None
    x = taeda.linspace(LOW, HIGH, POINTS).requires_grad_()
    y = layer(x)
    (slope,) = taeda.autograd.grad(y.sum(), x)
    values, slopes = y.detach().tolist(), slope.tolist()
    bottom, top = min(-1.0, *values, *slopes), max(1.0, *values, *slopes)
    bottom, top = max(bottom, -4.0) - 0.2, min(top, 4.0) + 0.2

    def place(a: float, b: float) -> str:
        return f"{(a - LOW) / (HIGH - LOW) * WIDTH:.1f},{(top - b) / (top - bottom) * HEIGHT:.1f}"

    def curve(points: list[float], kind: str) -> str:
        steps = zip(x.tolist(), points, strict=True)
        return f'<polyline class="{kind}" points="{" ".join(place(a, b) for a, b in steps)}"/>'

    axes = (
        f'<polyline class="axis" points="{place(LOW, 0)} {place(HIGH, 0)}"/>'
        f'<polyline class="axis" points="{place(0, bottom)} {place(0, top)}"/>'
    )
    label = f"{name.name} from {LOW:g} to {HIGH:g}, and its derivative (dashed)"
    return (
        f'<figure class="curve"><svg role="img" aria-label="{label}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f"{axes}{curve(slopes, 'slope')}{curve(values, 'value')}"
        f"</svg><figcaption>{label}</figcaption></figure>"
    )
