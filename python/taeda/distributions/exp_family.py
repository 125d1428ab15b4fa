"""Exponential families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from .distribution import Distribution
from .utils import sum_rightmost

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), natural parameters> - log normalizer + k(x))``.

    A subclass gives ``_natural_params``, ``_log_normalizer`` of them and ``_mean_carrier_measure``,
    the expected ``k(x)``; the entropy and divergences follow by differentiation.
    """

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no entropy in closed form")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no natural parameters")

    def _log_normalizer(self, *args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log normalizer")

    def entropy(self) -> Tensor:
        """By the derivative of the log normalizer."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        with taeda.enable_grad():
            log_normalizer = self._log_normalizer(*parameters)
            slopes = taeda.autograd.grad(log_normalizer.sum(), parameters, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        dims = len(self.event_shape)
        for parameter, slope in zip(parameters, slopes, strict=True):
            result = result - sum_rightmost(parameter * slope, dims)
        return result
