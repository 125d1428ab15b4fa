"""Distributions of transformed draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transforms`` of draws from ``base_distribution``.

    >>> base = taeda.distributions.Normal(0.0, 1.0)
    >>> d = TransformedDistribution(base, [taeda.distributions.ExpTransform()])
    >>> d.log_prob(taeda.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: dict[str, Any] = {}
    base_dist: Any

    def __init__(
        self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(parts, list) or not all(isinstance(t, Transform) for t in parts):
            raise ValueError(
                f"{type(self).__name__}: transforms must be a Transform or a list of them, but was "
                f"{transforms!r}"
            )
        self.transforms = parts
        # The base is made as large as the results: its batch, and its event.
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(parts)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                f"{type(self).__name__}: base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {shape}."
            )
        forward = transform.forward_shape(shape)
        expanded = transform.inverse_shape(forward)
        if shape != expanded:
            batch = expanded[: len(expanded) - event_dim]
            base_distribution = base_distribution.expand(batch)
        taken = transform.domain.event_dim - event_dim
        if taken > 0:
            base_distribution = Independent(base_distribution, taken)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event_dim = max(transform.codomain.event_dim, event_dim + change)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = taeda.Size(batch_shape) + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        taken = len(self.event_shape) - support.event_dim
        return constraints.independent(support, taken) if taken > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """The base's."""
        return bool(self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        own = self.base_dist.log_prob(y)
        return log_prob + sum_rightmost(own, event_dim - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        sign = self._sign()
        if isinstance(sign, int) and sign == 1:
            return self.base_dist.cdf(value)
        return sign * (self.base_dist.cdf(value) - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        sign = self._sign()
        if not (isinstance(sign, int) and sign == 1):
            value = sign * (value - 0.5) + 0.5
        value = self.base_dist.icdf(value)
        for transform in self.transforms:
            value = transform(value)
        return value
