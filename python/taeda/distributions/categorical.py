"""The categorical distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import check_one, lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of the integers from 0, with weights ``probs`` or log weights ``logits`` along the last
    dimension. Weights need not sum to 1: they are scaled.

    >>> Categorical(taeda.tensor([1.0, 1.0, 2.0])).log_prob(taeda.tensor(2)).exp()
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _expandable = ("probs", "logits")

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one("Categorical", probs=probs, logits=logits)
        given = logits if probs is None else probs
        assert given is not None
        if given.dim() < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(
                f"{type(self).__name__}: `{name}` parameter must be at least one-dimensional."
            )
        if probs is None:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        probs = self.__dict__.get("probs")
        return self.logits if probs is None else probs

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter, with the categories."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return taeda.full(
            self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = taeda.Size(sample_shape)
        with taeda.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            draws = taeda.multinomial(rows, shape.numel(), True).T
            return draws.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = taeda.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=taeda.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = taeda.arange(self._num_events, dtype=taeda.long, device=self._param.device)
        return self._enumerated(values, expand)
