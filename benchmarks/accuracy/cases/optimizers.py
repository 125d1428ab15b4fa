"""Three steps of each optimizer from given gradients. The scale is the parameter and all updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.table import Case, add, beside
from benchmarks.accuracy.ulps import Array

REAL = ("float32", "float64")
STEPS, COUNT = 3, 2000
LD = np.longdouble
Update = Callable[[Array, Array, int, dict[str, Any]], Array]


def rows(name: str, update: Update, **options: Any) -> None:
    """`update` gives the new parameter from the old one, the gradient, the step from 1 and a state."""

    def inputs(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return rng.normal(size=COUNT), rng.normal(size=(STEPS, COUNT)) * np.exp2(
            rng.uniform(-8, 3, COUNT)
        )

    def run(framework: Any, p: Any, gradients: Any) -> Any:
        leaf = p.clone().requires_grad_()
        optimizer = getattr(framework.optim, name)([leaf], **options)
        for g in gradients:
            leaf.grad = g.clone()
            optimizer.step()
        return leaf

    def reference(p: Array, gradients: Array) -> tuple[Array, Array]:
        p, state = p.astype(LD), {}
        scale = np.abs(p)
        for t, g in enumerate(gradients.astype(LD), 1):
            new = update(p, g, t, state)
            scale = scale + np.abs(new - p)
            p = new
        return p, scale

    words = ", ".join(f"{k}={v}" for k, v in options.items() if k != "lr")
    for dtype in REAL:
        add(
            Case(
                "optimizers",
                name + (f" ({words})" if words else ""),
                dtype,
                inputs,
                run,
                beside(dtype, reference, scaled=True),
            )
        )


def average(state: dict[str, Any], key: str, value: Array, beta: LD) -> Array:
    state[key] = beta * state.get(key, 0) + (1 - beta) * value
    return state[key]


B1, B2 = LD(0.9), LD(0.999)
LR = 0.01
L = LD(0.01)


def sgd(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    return p - L * g


def momentum(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    g = g + LD(0.1) * p
    s["v"] = g if t == 1 else B1 * s["v"] + g
    return p - L * (g + B1 * s["v"])


def adam(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    m, v = average(s, "m", g, B1), average(s, "v", g * g, B2)
    return p - L * (m / (1 - B1**t)) / (np.sqrt(v / (1 - B2**t)) + LD(1e-8))


def adamw(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    return adam(p * (1 - L * LD(0.1)), g, t, s)


def amsgrad(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    m, v = average(s, "m", g, B1), average(s, "v", g * g, B2)
    s["most"] = np.maximum(s.get("most", 0), v)
    return p - L * (m / (1 - B1**t)) / (np.sqrt(s["most"] / (1 - B2**t)) + LD(1e-8))


def adamax(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    m = average(s, "m", g, B1)
    s["u"] = np.maximum(B2 * s.get("u", 0), np.abs(g) + LD(1e-8))
    return p - L / (1 - B1**t) * m / s["u"]


def nadam(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    m, v = average(s, "m", g, B1), average(s, "v", g * g, B2)
    now, after = (B1 * (1 - LD(0.5) * LD(0.96) ** (k * LD(0.004))) for k in (t, t + 1))
    s["product"] = s.get("product", 1) * now
    step = g * (1 - now) / (1 - s["product"]) + m * after / (1 - s["product"] * after)
    return p - L * step / (np.sqrt(v / (1 - B2**t)) + LD(1e-8))


def rmsprop(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    v = average(s, "v", g * g, LD(0.99))
    return p - L * g / (np.sqrt(v) + LD(1e-8))


def adagrad(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    s["sum"] = s.get("sum", 0) + g * g
    return p - L * g / (np.sqrt(s["sum"]) + LD(1e-10))


def adadelta(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    rho, eps = LD(0.9), LD(1e-6)
    v = average(s, "v", g * g, rho)
    step = np.sqrt(s.get("u", 0) + eps) / np.sqrt(v + eps) * g
    average(s, "u", step * step, rho)
    return p - L * step


def rprop(p: Array, g: Array, t: int, s: dict[str, Any]) -> Array:
    before = s.get("g", np.zeros_like(g))
    size = s.get("size", np.full_like(g, L))
    sign = np.sign(g * before)
    size = np.clip(size * np.where(sign > 0, LD(1.2), np.where(sign < 0, LD(0.5), 1)), LD(1e-6), 50)
    g = np.where(sign < 0, 0, g)
    s["g"], s["size"] = g, size
    return p - np.sign(g) * size


rows("SGD", sgd, lr=LR)
rows("SGD", momentum, lr=LR, momentum=0.9, nesterov=True, weight_decay=0.1)
rows("Adam", adam, lr=LR)
rows("Adam", amsgrad, lr=LR, amsgrad=True)
rows("AdamW", adamw, lr=LR, weight_decay=0.1)
rows("Adamax", adamax, lr=LR)
rows("NAdam", nadam, lr=LR)
rows("RMSprop", rmsprop, lr=LR)
rows("Adagrad", adagrad, lr=LR)
rows("Adadelta", adadelta, lr=LR)
rows("Rprop", rprop, lr=LR)
