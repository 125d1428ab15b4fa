"""Softmax, cross entropy and the normalizations, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.cases.reductions import ALL, REAL, Make, log_sum, wide_of
from benchmarks.accuracy.table import Case, add, beside
from benchmarks.accuracy.ulps import Array


def rows(
    title: str,
    inputs: Make,
    run: Callable[..., Any],
    reference: Callable[..., Any],
    dtypes: tuple[str, ...] = REAL,
    scaled: bool = True,
    family: str = "softmax and losses",
) -> None:
    for dtype in dtypes:
        add(Case(family, title, dtype, inputs, run, beside(dtype, reference, scaled)))


# ---- softmax


def scores(*shape: int, deviation: float = 3) -> Make:
    return lambda rng, n: (rng.normal(0, deviation, shape),)


def softmax(axis: int) -> Callable[[Array], Array]:
    def value(x: Array) -> Array:
        x = wide_of(x)
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return value


def scaled_softmax(axis: int) -> Callable[[Array], tuple[Array, Array]]:
    """The scale grows with the distance from the row's largest, whose rounding the exponential sees."""

    def both(x: Array) -> tuple[Array, Array]:
        value = softmax(axis)(x)
        return value, value * (1 + np.abs(x - x.max(axis, keepdims=True)))

    return both


def log_softmax(axis: int) -> Callable[[Array], tuple[Array, Array]]:
    """The scale is the larger of the row's logarithm of the sum and the element itself."""

    def both(x: Array) -> tuple[Array, Array]:
        value, _ = log_sum(x, axis)
        value = np.expand_dims(value, axis)
        result = wide_of(x) - value
        return result, np.maximum(np.abs(result), np.maximum(np.abs(value), np.abs(x)))

    return both


rows(
    "softmax of rows of 1000",
    scores(64, 1000),
    lambda fw, x: x.softmax(1),
    scaled_softmax(1),
    ALL,
)
rows(
    "softmax of rows of 1000, spread by 10",
    scores(64, 1000, deviation=10),
    lambda fw, x: x.softmax(1),
    scaled_softmax(1),
)
rows(
    "softmax of columns of 100",
    scores(100, 64),
    lambda fw, x: x.softmax(0),
    scaled_softmax(0),
)
rows(
    "log_softmax of rows of 1000",
    scores(64, 1000),
    lambda fw, x: x.log_softmax(1),
    log_softmax(1),
    ALL,
)
rows(
    "log_softmax of columns of 100", scores(100, 64), lambda fw, x: x.log_softmax(0), log_softmax(0)
)


def with_targets(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.normal(0, 3, (64, 1000)), rng.integers(0, 1000, 64)


def cross_entropy(x: Array, target: Array) -> tuple[Array, Array]:
    value, scale = log_sum(x, 1)
    picked = wide_of(x)[np.arange(len(x)), target]
    return value - picked, np.maximum(scale, np.abs(picked))


def mean_cross_entropy(x: Array, target: Array) -> tuple[Array, Array]:
    value, scale = cross_entropy(x, target)
    return value.mean(), scale.mean()


def cross_entropy_gradient(x: Array, target: Array) -> tuple[Array, Array]:
    p = softmax(1)(x)
    one = np.zeros_like(p)
    one[np.arange(len(x)), target] = 1
    return (p - one) / len(x), np.maximum(p, one) / len(x)


def loss_gradient(framework: Any, x: Any, target: Any) -> Any:
    leaf = x.clone().requires_grad_()
    framework.nn.functional.cross_entropy(leaf, target).backward()
    return leaf.grad


rows(
    "cross_entropy of each row",
    with_targets,
    lambda fw, x, t: fw.nn.functional.cross_entropy(x, t, reduction="none"),
    cross_entropy,
)
rows(
    "cross_entropy",
    with_targets,
    lambda fw, x, t: fw.nn.functional.cross_entropy(x, t),
    mean_cross_entropy,
)
rows("cross_entropy, gradient", with_targets, loss_gradient, cross_entropy_gradient)


def softmax_gradient(x: Array, g: Array) -> tuple[Array, Array]:
    p = softmax(1)(x)
    g = wide_of(g)
    return p * (g - (p * g).sum(1, keepdims=True)), p * (
        np.abs(g) + (p * np.abs(g)).sum(1, keepdims=True)
    )


def run_softmax_gradient(framework: Any, x: Any, g: Any) -> Any:
    leaf = x.clone().requires_grad_()
    leaf.softmax(1).backward(g)
    return leaf.grad


rows(
    "softmax, gradient",
    lambda rng, n: (rng.normal(0, 3, (64, 1000)), rng.normal(size=(64, 1000))),
    run_softmax_gradient,
    softmax_gradient,
)

# ---- normalizations: x - mean over the deviation, by groups of axes

EPS = 1e-5


def standardized(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """X - mean over the deviation; its scale, of |x| + |mean|; the deviation's inverse."""
    x = wide_of(x)
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + np.longdouble(EPS))
    return (x - mean) * inverse, (np.abs(x) + np.abs(mean)) * inverse, inverse


def affine(axes: tuple[int, ...], channel: int) -> Callable[..., tuple[Array, Array]]:
    def both(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
        shape = [1] * x.ndim
        shape[channel] = -1
        w, b = wide_of(w).reshape(shape), wide_of(b).reshape(shape)
        value, scale, _ = standardized(x, axes)
        return value * w + b, scale * np.abs(w) + np.abs(b)

    return both


def normalization_gradients(
    axes: tuple[int, ...], channel: int
) -> Callable[..., tuple[Array, ...]]:
    """The gradients of input, weight and bias; each with the sum of its terms' magnitudes."""

    def all_of(x: Array, w: Array, g: Array) -> tuple[Array, ...]:
        shape = [1] * x.ndim
        shape[channel] = -1
        others = tuple(i for i in range(x.ndim) if i != channel)
        w, g = wide_of(w).reshape(shape), wide_of(g)
        z, z_scale, inverse = standardized(x, axes)
        gz = g * w
        first, second = gz.mean(axes, keepdims=True), (gz * z).mean(axes, keepdims=True)
        size = np.abs(gz)
        scale = (
            size
            + size.mean(axes, keepdims=True)
            + np.abs(z_scale) * (size * z_scale).mean(axes, keepdims=True)
        )
        return (
            (gz - first - z * second) * inverse,
            scale * inverse,
            (g * z).sum(others),
            (np.abs(g) * z_scale).sum(others),
            g.sum(others),
            np.abs(g).sum(others),
        )

    return all_of


def gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(framework: Any, x: Any, w: Any, g: Any) -> Any:
        leaves = [
            x.clone().requires_grad_(),
            w.clone().requires_grad_(),
            framework.zeros_like(w).requires_grad_(),
        ]
        f(framework, *leaves).backward(g)
        return tuple(leaf.grad for leaf in leaves)

    return run


def inputs_of(*shape: int, channel: int, mean: float = 0) -> Make:
    size = shape[channel]
    return lambda rng, n: (
        rng.normal(mean, 1, shape),
        rng.uniform(0.5, 1.5, size),
        rng.normal(size=size),
    )


def inputs_back(*shape: int, channel: int) -> Make:
    size = shape[channel]
    return lambda rng, n: (
        rng.normal(size=shape),
        rng.uniform(0.5, 1.5, size),
        rng.normal(size=shape),
    )


def layer(framework: Any, x: Any, w: Any, b: Any) -> Any:
    return framework.nn.functional.layer_norm(x, w.shape, w, b, EPS)


def batch(framework: Any, x: Any, w: Any, b: Any) -> Any:
    return framework.nn.functional.batch_norm(x, None, None, w, b, True, 0.1, EPS)


def instance(framework: Any, x: Any, w: Any, b: Any) -> Any:
    return framework.nn.functional.instance_norm(x, None, None, w, b, True, 0.1, EPS)


NORMS = "normalizations"
rows("layer_norm of 768", inputs_of(32, 768, channel=1), layer, affine((1,), 1), ALL, family=NORMS)
rows(
    "layer_norm of 768 about 100",
    inputs_of(32, 768, channel=1, mean=100),
    layer,
    affine((1,), 1),
    family=NORMS,
)
rows(
    "layer_norm of 768, gradients",
    inputs_back(32, 768, channel=1),
    gradients(layer),
    normalization_gradients((1,), 1),
    family=NORMS,
)
rows(
    "batch_norm, training",
    inputs_of(16, 32, 12, 12, channel=1),
    batch,
    affine((0, 2, 3), 1),
    family=NORMS,
)
rows(
    "batch_norm, training, about 100",
    inputs_of(16, 32, 12, 12, channel=1, mean=100),
    batch,
    affine((0, 2, 3), 1),
    family=NORMS,
)
rows(
    "batch_norm, training, gradients",
    inputs_back(16, 32, 12, 12, channel=1),
    gradients(batch),
    normalization_gradients((0, 2, 3), 1),
    family=NORMS,
)
rows(
    "batch_norm of 64 columns", inputs_of(128, 64, channel=1), batch, affine((0,), 1), family=NORMS
)
rows(
    "instance_norm", inputs_of(8, 16, 14, 14, channel=1), instance, affine((2, 3), 1), family=NORMS
)


def group_reference(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    size = x.shape
    value, scale, _ = standardized(x.reshape(size[0], 4, -1), (2,))
    w, b = wide_of(w).reshape(1, -1, 1, 1), wide_of(b).reshape(1, -1, 1, 1)
    return value.reshape(size) * w + b, scale.reshape(size) * np.abs(w) + np.abs(b)


def rms_reference(x: Array, w: Array, b: Array) -> Array:
    x = wide_of(x)
    return x * wide_of(w) / np.sqrt((x * x).mean(1, keepdims=True) + np.longdouble(EPS))


def evaluation(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    x, w, b = (wide_of(v) for v in (x, w, b))
    inverse = 1 / np.sqrt(w * w + np.longdouble(EPS))
    shape = (1, -1, 1, 1)
    return (
        (x - b.reshape(shape)) * inverse.reshape(shape),
        (np.abs(x) + np.abs(b.reshape(shape))) * inverse.reshape(shape),
    )


rows(
    "group_norm of 4 groups",
    inputs_of(8, 16, 14, 14, channel=1),
    lambda fw, x, w, b: fw.nn.functional.group_norm(x, 4, w, b, EPS),
    group_reference,
    family=NORMS,
)
rows(
    "rms_norm of 768",
    inputs_of(32, 768, channel=1),
    lambda fw, x, w, b: fw.nn.functional.rms_norm(x, w.shape, w, EPS),
    rms_reference,
    scaled=False,
    family=NORMS,
)
rows(
    "batch_norm, evaluation",
    inputs_of(8, 16, 14, 14, channel=1),
    lambda fw, x, w, b: fw.nn.functional.batch_norm(x, b, w * w, None, None, False, 0.1, EPS),
    evaluation,
    family=NORMS,
)
rows(
    "normalize",
    lambda rng, n: (rng.normal(size=(64, 300)),),
    lambda fw, x: fw.nn.functional.normalize(x, dim=1),
    lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
    scaled=False,
    family=NORMS,
)
