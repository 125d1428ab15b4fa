"""Losses, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy.cases.pointwise import (
    functional,
    log1p_exp,
    pair,
    row,
    terms,
    wide_of,
)
from benchmarks.accuracy.inputs import between

LOSS = {"reduction": "none"}


def huber(x: Any, y: Any) -> Any:
    off = np.abs(x - y)
    return np.where(off < 1, off * off / 2, off - 0.5)


row(
    "mse_loss",
    lambda x, y: (x - y) ** 2,
    pair(-3, 3),
    functional("mse_loss", **LOSS),
    family="losses",
)
row("smooth_l1_loss", huber, pair(-3, 3), functional("smooth_l1_loss", **LOSS), family="losses")
row("huber_loss", huber, pair(-3, 3), functional("huber_loss", **LOSS), family="losses")
row(
    "binary_cross_entropy",
    lambda p, t: -(t * np.log(wide_of(p)) + (1 - t) * np.log1p(-wide_of(p))),
    lambda d: (between(0.001, 0.999), between(0, 1)),
    functional("binary_cross_entropy", **LOSS),
    family="losses",
)
row(
    "binary_cross_entropy_with_logits",
    terms(lambda x, t: log1p_exp(x) - x * t, lambda x, t: log1p_exp(x), lambda x, t: x),
    lambda d: (between(-40, 40), between(0, 1)),
    functional("binary_cross_entropy_with_logits", **LOSS),
    family="losses",
    scaled=True,
)
row(
    "kl_div",
    terms(lambda x, t: t * (np.log(t) - x), lambda x, t: t * np.log(t), lambda x, t: t * x),
    lambda d: (between(-10, 0), between(0.001, 1)),
    functional("kl_div", **LOSS),
    family="losses",
    scaled=True,
)
row(
    "soft_margin_loss",
    lambda x, t: log1p_exp(-x * t),
    lambda d: (between(-30, 30), lambda rng, n: rng.choice([-1.0, 1.0], n)),
    functional("soft_margin_loss", **LOSS),
    family="losses",
)
row(
    "poisson_nll_loss",
    terms(lambda x, t: np.exp(x) - t * x, lambda x, t: np.exp(x), lambda x, t: t * x),
    lambda d: (between(-5, 5), between(0, 9)),
    functional("poisson_nll_loss", **LOSS),
    family="losses",
    scaled=True,
)
