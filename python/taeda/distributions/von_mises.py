"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["VonMises"]


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    result = taeda.full_like(y, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * y + c
    return result


# Abramowitz, Stegun: Handbook of mathematical functions, 9.8.1 to 9.8.4.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (
        0.39894228,
        0.01328592,
        0.00225319,
        -0.00157565,
        0.00916281,
        -0.02057706,
        0.02635537,
        -0.01647633,
        0.00392377,
    ),
    (
        0.39894228,
        -0.03988024,
        -0.00362018,
        0.00163801,
        -0.01031555,
        0.02282967,
        -0.02895312,
        0.01787654,
        -0.00420059,
    ),
)


def log_bessel(x: Tensor, order: int) -> Tensor:
    """The logarithm of the modified Bessel function of order 0 or 1, of positive numbers."""
    y = (x / 3.75).square()
    small = taeda.log(_polynomial(y, _SMALL[order]))
    if order == 1:
        small = small + x.abs().log()
    large = x - 0.5 * x.log() + taeda.log(_polynomial(3.75 / x, _LARGE[order]))
    return taeda.where(x < 3.75, small, large)


class VonMises(Distribution):
    """A normal distribution on the circle: angles in ``[-pi, pi)`` around ``loc``."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _expandable = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        k = self.concentration
        return 1 - (log_bessel(k, 1) - log_bessel(k, 0)).exp()

    def _envelope(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that draws are proposed from."""
        k = self.concentration.double()
        tau = 1 + (1 + 4 * k.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return taeda.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Best, Fisher: Efficient simulation of the von Mises distribution, 1979."""
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            loc, k, r = self.loc.double(), self.concentration.double(), self._envelope()
            x = taeda.empty(shape, dtype=loc.dtype, device=loc.device)
            done = taeda.zeros(shape, dtype=taeda.bool, device=loc.device)
            while not done.all():
                u = taeda.rand((3, *shape), dtype=loc.dtype, device=loc.device)
                u1, u2, u3 = u.unbind()
                z = taeda.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = taeda.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * taeda.cos(value - self.loc) - math.log(2 * math.pi) - log_bessel(k, 0)
