"""Pooling, resampling, recurrent layers and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.cases.pointwise import logistic
from benchmarks.accuracy.cases.products import arrays, rows
from benchmarks.accuracy.cases.reductions import ALL, wide_of
from benchmarks.accuracy.ulps import Array


def functional(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    return lambda framework, *tensors: getattr(framework.nn.functional, name)(
        *tensors, *args, **options
    )


# ---- pooling and resampling: linear maps of the pixels, with the map of the magnitudes as the scale

IMAGES = "pooling and resampling"


def linear(f: Callable[[Array], Array]) -> Callable[[Array], tuple[Array, Array]]:
    return lambda x: (f(x), f(np.abs(x)))


def blocks(x: Array, size: int, stride: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return windows[:, :, ::stride, ::stride].mean((-2, -1))


def adaptive(x: Array, size: int) -> Array:
    n = x.shape[-1]
    ends = [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
    return np.stack(
        [np.stack([x[..., a:b, c:d].mean((-2, -1)) for c, d in ends], -1) for a, b in ends], -2
    )


PIXELS = arrays((2, 8, 20, 20))
rows(
    IMAGES,
    "avg_pool2d of 3 x 3",
    PIXELS,
    functional("avg_pool2d", 3, 2),
    linear(lambda x: blocks(x, 3, 2)),
    ALL,
)
rows(
    IMAGES,
    "adaptive_avg_pool2d to 7 x 7",
    PIXELS,
    functional("adaptive_avg_pool2d", 7),
    linear(lambda x: adaptive(x, 7)),
)
rows(
    IMAGES,
    "adaptive_avg_pool2d to 1 x 1",
    PIXELS,
    functional("adaptive_avg_pool2d", 1),
    linear(lambda x: adaptive(x, 1)),
    ALL,
)


def cubic(t: Array, a: float = -0.75) -> Array:
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    return np.where(t <= 1, near, np.where(t < 2, ((t - 5) * t + 8) * t * a - 4 * a, 0))


def hat(t: Array) -> Array:
    return np.maximum(0, 1 - np.abs(t))


def weights(n: int, out: int, kernel: Callable[[Array], Array], corners: bool) -> Array:
    """How much of each of n pixels goes into each of `out`; beyond the ends the last one goes on."""
    i = np.arange(out, dtype=np.longdouble)
    at = i * (n - 1) / (out - 1) if corners else (i + 0.5) * n / out - 0.5
    if kernel is hat:
        at = np.clip(at, 0, n - 1)
    result = np.zeros((out, n), np.longdouble)
    for k in range(-3, n + 3):
        result[:, min(max(k, 0), n - 1)] += kernel(at - k)
    return result


def resampled(
    out: int, kernel: Callable[[Array], Array], corners: bool
) -> Callable[[Array], tuple[Array, Array]]:
    def both(x: Array) -> tuple[Array, Array]:
        w = weights(x.shape[-1], out, kernel, corners)
        return np.einsum("oi,ncij,pj->ncop", w, x, w), np.abs(x).max() * np.ones(
            (*x.shape[:2], out, out)
        )

    return both


for out in (33, 11):
    for mode, kernel in (("bilinear", hat), ("bicubic", cubic)):
        for corners in (False, True):
            rows(
                IMAGES,
                f"interpolate, {mode}, 20 to {out}" + (", align_corners" if corners else ""),
                PIXELS,
                functional("interpolate", (out, out), mode=mode, align_corners=corners),
                resampled(out, kernel, corners),
            )


def sampled(kernel: Callable[[Array], Array]) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The scale is the largest pixel times what the rounding of a place can make of it."""

    def both(x: Array, grid: Array) -> tuple[Array, Array]:
        x, grid = wide_of(x), wide_of(grid)
        n = x.shape[-1]
        result = np.zeros((*x.shape[:2], *grid.shape[1:3]), np.longdouble)
        px, py = (((grid[..., k] + 1) * n - 1) / 2 for k in (0, 1))
        for i in range(n):
            for j in range(n):
                part = kernel(py - i) * kernel(px - j)
                result += x[:, :, i, j, None, None] * part[:, None]
        return result, np.full(result.shape, np.abs(x).max() * n)

    return both


def with_grid(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.normal(size=(2, 4, 12, 12)), rng.uniform(-1.1, 1.1, (2, 15, 15, 2))


rows(
    IMAGES,
    "grid_sample, bilinear",
    with_grid,
    functional("grid_sample", mode="bilinear", padding_mode="zeros", align_corners=False),
    sampled(hat),
)
rows(
    IMAGES,
    "grid_sample, bicubic",
    with_grid,
    functional("grid_sample", mode="bicubic", padding_mode="zeros", align_corners=False),
    sampled(cubic),
)

# ---- recurrent layers: 10 steps of 24 units, whose outputs are at most 1, which is the scale

LAYERS = "recurrent layers"
STEPS, UNITS, INPUTS = 10, 24, 16


def recurrent(gates: int) -> Callable[..., Any]:
    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        shapes = (
            (STEPS, 3, INPUTS),
            (gates * UNITS, INPUTS),
            (gates * UNITS, UNITS),
            (gates * UNITS,),
            (gates * UNITS,),
        )
        return tuple(rng.normal(0, 1 if i == 0 else 0.3, s) for i, s in enumerate(shapes))

    return make


def layer(name: str) -> Callable[..., Any]:
    def run(framework: Any, x: Any, *parameters: Any) -> Any:
        made = getattr(framework.nn, name)(INPUTS, UNITS, dtype=x.dtype)
        with framework.no_grad():
            for parameter, value in zip(made.parameters(), parameters, strict=True):
                parameter.copy_(value)
        return made(x)[0]

    return run


def lstm(x: Array, wi: Array, wh: Array, bi: Array, bh: Array) -> tuple[Array, Array]:
    x, wi, wh, bi, bh = (wide_of(v) for v in (x, wi, wh, bi, bh))
    h = c = np.zeros((x.shape[1], UNITS), np.longdouble)
    out = []
    for step in x:
        i, f, g, o = np.split(step @ wi.T + bi + h @ wh.T + bh, 4, -1)
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
        out.append(h)
    return np.stack(out), np.ones((len(x), *h.shape))


def gru(x: Array, wi: Array, wh: Array, bi: Array, bh: Array) -> tuple[Array, Array]:
    x, wi, wh, bi, bh = (wide_of(v) for v in (x, wi, wh, bi, bh))
    h = np.zeros((x.shape[1], UNITS), np.longdouble)
    out = []
    for step in x:
        ri, zi, ni = np.split(step @ wi.T + bi, 3, -1)
        rh, zh, nh = np.split(h @ wh.T + bh, 3, -1)
        z = logistic(zi + zh)
        h = (1 - z) * np.tanh(ni + logistic(ri + rh) * nh) + z * h
        out.append(h)
    return np.stack(out), np.ones((len(x), *h.shape))


def rnn(x: Array, wi: Array, wh: Array, bi: Array, bh: Array) -> tuple[Array, Array]:
    x, wi, wh, bi, bh = (wide_of(v) for v in (x, wi, wh, bi, bh))
    h = np.zeros((x.shape[1], UNITS), np.longdouble)
    out = []
    for step in x:
        h = np.tanh(step @ wi.T + bi + h @ wh.T + bh)
        out.append(h)
    return np.stack(out), np.ones((len(x), *h.shape))


rows(LAYERS, "LSTM", recurrent(4), layer("LSTM"), lstm)
rows(LAYERS, "GRU", recurrent(3), layer("GRU"), gru)
rows(LAYERS, "RNN", recurrent(1), layer("RNN"), rnn)

# ---- distances

DISTANCES = "distances"
POINTS = arrays((40, 30), (50, 30))
FAR = arrays((40, 300), (50, 300))


def distances(p: float) -> Callable[[Array, Array], Array]:
    def value(a: Array, b: Array) -> Array:
        off = np.abs(wide_of(a)[:, None] - wide_of(b)[None])
        return (off ** np.longdouble(p)).sum(-1) ** (1 / np.longdouble(p))

    return value


def cosine(a: Array, b: Array) -> tuple[Array, Array]:
    a, b = wide_of(a), wide_of(b)
    size = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return (a * b).sum(-1) / size, np.abs(a * b).sum(-1) / size


for p in (1, 2, 3):
    rows(
        DISTANCES,
        f"cdist, p = {p}",
        POINTS,
        lambda fw, a, b, p=p: fw.cdist(a, b, p),
        distances(p),
        scaled=False,
    )
rows(
    DISTANCES,
    "cdist of 300 columns, p = 2",
    FAR,
    lambda fw, a, b: fw.cdist(a, b),
    lambda a, b: (distances(2)(a, b), np.sqrt((a * a).sum(-1)[:, None] + (b * b).sum(-1))),
)
rows(
    DISTANCES,
    "cosine_similarity",
    arrays((60, 100), (60, 100)),
    functional("cosine_similarity"),
    cosine,
)


def ctc(log_p: Array, target: Array) -> tuple[Array, Array]:
    """Of each of the batch, with all steps; the label 0 is blank."""
    log_p = wide_of(log_p)
    steps, batch, _ = log_p.shape
    found = []
    for b in range(batch):
        labels = [0]
        for label in target[b]:
            labels += [int(label), 0]
        a = np.full(len(labels), -np.inf, np.longdouble)
        a[:2] = log_p[0, b, labels[:2]]
        for t in range(1, steps):
            new = a.copy()
            new[1:] = np.logaddexp(new[1:], a[:-1])
            for s in range(2, len(labels)):
                if labels[s] != 0 and labels[s] != labels[s - 2]:
                    new[s] = np.logaddexp(new[s], a[s - 2])
            a = new + log_p[t, b, labels]
        found.append(-np.logaddexp(a[-1], a[-2]))
    value = np.array(found)
    return value, np.abs(value)


def with_labels(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.normal(size=(20, 4, 10))
    return x - np.log(np.exp(x).sum(-1, keepdims=True)), rng.integers(1, 10, (4, 6))


def ctc_loss(framework: Any, log_p: Any, target: Any) -> Any:
    return framework.nn.functional.ctc_loss(log_p, target, [20] * 4, [6] * 4, reduction="none")


rows("softmax and losses", "ctc_loss, 20 steps", with_labels, ctc_loss, ctc)
