"""The base of all distributions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import taeda

from . import constraints
from .utils import lazy_property

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them.

    Args:
        batch_shape: the shape of the batch of independent distributions.
        event_shape: the shape of one draw from one of them.
        validate_args: check parameters and values; by default, as ``set_default_validate_args``
            says, which is True at first.

    Raises:
        ValueError: a parameter is not where ``arg_constraints`` wants it.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The tensors of batch shape plus event dimensions that `expand` expands, where they are set.
    _expandable: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments unless told."""
        if value not in [True, False]:
            raise ValueError(f"set_default_validate_args: value must be a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = taeda.Size(batch_shape)
        self._event_shape = taeda.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            required = self.arg_constraints
        except NotImplementedError:
            required = {}
            warnings.warn(
                f"{type(self).__name__} does not define arg_constraints; set them, or turn "
                "validation off with validate_args=False",
                stacklevel=4,
            )
        for name, constraint in required.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed from those that are checked
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"{type(self).__name__}: Expected parameter {name} ({type(value).__name__} of "
                    f"shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to ``batch_shape``, without copies.

        A subclass with an ``__init__`` of its own defines ``expand`` too. It may begin with
        ``new = self._get_checked_instance(TheSubclass, _instance)``, where ``_instance`` is what a
        subclass of that has made, and end with ``new``, set up.

        Raises:
            NotImplementedError: a subclass defines ``__init__`` but not ``expand``.
        """
        here = __package__ + "."
        cls = next(kind for kind in type(self).__mro__ if kind.__module__.startswith(here))
        new = self._get_checked_instance(cls, _instance)
        new.__dict__.update(self.__dict__)
        batch_shape = taeda.Size(batch_shape)
        old = len(self._batch_shape)
        for name in self._expandable:
            value = self.__dict__.get(name)
            if value is not None:
                setattr(new, name, value.expand(batch_shape + value.shape[old:]))
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """``_instance``, or a bare one of this class, if ``expand`` of ``cls`` may set it up."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass of {cls.__name__} that defines __init__ "
                "must also define expand"
            )
        return type(self).__new__(type(self))

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one draw from one of them."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter, by name."""
        raise NotImplementedError(f"{type(self).__name__} must define arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint that values satisfy."""
        raise NotImplementedError(f"{type(self).__name__} must define support")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws that are differentiable by the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` draws; deprecated for ``sample((n,))``."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw of at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension; the batch's shape after it if ``expand``."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support")

    def entropy(self) -> Tensor:
        """The expected ``-log_prob``, in nats; of the batch's shape."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """``exp(entropy())``."""
        return taeda.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return taeda.Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Values along a first dimension, before a batch that is expanded or of ones."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Raise unless ``value`` can be a draw."""
        if not isinstance(value, taeda.Tensor):
            raise ValueError(
                f"{type(self).__name__}: The value argument to log_prob must be a Tensor"
            )
        first_event = value.dim() - len(self._event_shape)
        if value.shape[first_event:] != self._event_shape:
            raise ValueError(
                f"{type(self).__name__}: The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"{type(self).__name__}: Value is not broadcastable with "
                    f"batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self).__name__} does not define support; set it, or turn validation off "
                "with validate_args=False",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"{type(self).__name__}: Expected value argument ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) to be within the support ({support!r}) of the distribution "
                f"{self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = ", ".join(
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in names)
        )
        return f"{type(self).__name__}({values})"
