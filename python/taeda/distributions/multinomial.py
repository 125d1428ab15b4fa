"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all, empty_for

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes in ``total_count`` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"{type(self).__name__}: inhomogeneous total_count is not supported"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = taeda.Size(sample_shape)
        draws = self._categorical.sample(taeda.Size((self.total_count,)) + shape)
        draws = draws.movedim(0, -1)
        counts = empty_for(self.probs, self._extended_shape(shape)).zero_()
        return counts.scatter_add_(-1, draws, taeda.ones_like(draws, dtype=counts.dtype))

    def entropy(self) -> Tensor:
        n = taeda.tensor(float(self.total_count), dtype=self.probs.dtype)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = taeda.exp(self._binomial.log_prob(values))
        expected = (weights * taeda.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - taeda.lgamma(n + 1) + expected

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = taeda.where((value == 0) & (logits == -math.inf), 0.0, logits)
        ways = taeda.lgamma(value.sum(-1) + 1) - taeda.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
