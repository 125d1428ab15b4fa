"""Mixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one kind.

    Args:
        mixture_distribution: a Categorical that says how likely each component is.
        component_distribution: the components, along the last dimension of its batch.
        validate_args: check values.

    Raises:
        ValueError: the first is not a Categorical, or their shapes do not go together.
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                f"{type(self).__name__}:  The Mixture distribution needs to be an  instance of "
                "taeda.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                f"{type(self).__name__}: The Component distribution need to be an instance of "
                "taeda.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape[:-1]
        for size1, size2 in zip(
            reversed(mixture_distribution.batch_shape), reversed(batch), strict=False
        ):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"{type(self).__name__}: `mixture_distribution.batch_shape` "
                    f"({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape` ({component_distribution.batch_shape})"
                )
        km = mixture_distribution.logits.shape[-1]
        kc = component_distribution.batch_shape[-1]
        if km != kc:
            raise ValueError(
                f"{type(self).__name__}: `mixture_distribution component` ({km}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({kc})"
            )
        self._num_component = km
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        batch = taeda.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            (*batch, self._num_component)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """How likely each component is."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        means = self._weights() * self.component_distribution.mean
        return means.sum(dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        dim = -1 - self._event_ndims
        weights, parts = self._weights(), self.component_distribution
        within = (weights * parts.variance).sum(dim=dim)
        between = (weights * (parts.mean - self._pad(self.mean)).square()).sum(dim=dim)
        return within + between

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        log_weight = F.log_softmax(self.mixture_distribution.logits, dim=-1)
        return taeda.logsumexp(log_prob + log_weight, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            shape = taeda.Size(sample_shape)
            dim = len(shape) + len(self.batch_shape)
            which = self.mixture_distribution.sample(shape)
            values = self.component_distribution.sample(shape)
            index = which.reshape(which.shape + (1,) * (self._event_ndims + 1))
            index = index.expand((*which.shape, 1, *self.event_shape))
            return values.gather(dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
