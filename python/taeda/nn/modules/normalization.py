"""Normalisation over the features of each sample."""

from __future__ import annotations

import numbers
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (int(normalized_shape),)
    return tuple(normalized_shape)


class LayerNorm(Module):
    """Gives each sample mean 0 and variance 1 over its last dimensions (Ba et al., 2016).

    Args:
        normalized_shape: the sizes of the dimensions to normalise over.
        eps: added to the variance.
        elementwise_affine: whether there are a weight and a bias.
        bias: whether there is a bias, if `elementwise_affine`.
        device, dtype: those of the parameters.

    Attributes:
        weight, bias: of shape `normalized_shape`, at first 1 and 0; or None.

    >>> layer = taeda.nn.LayerNorm(3)
    >>> layer(taeda.tensor([[0.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.0, 0.0]]
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = Parameter(taeda.empty(self.normalized_shape, **options))
            if bias:
                self.bias = Parameter(taeda.empty(self.normalized_shape, **options))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the weight 1 and the bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions (Zhang and Sennrich, 2019).

    Args:
        normalized_shape: the sizes of the dimensions to normalise over.
        eps: added to the mean square, by default the dtype's machine epsilon.
        elementwise_affine: whether there is a weight.
        device, dtype: those of the parameter.

    Attributes:
        weight: of shape `normalized_shape`, at first 1; or None.
    """

    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        if elementwise_affine:
            values = taeda.empty(self.normalized_shape, device=device, dtype=dtype)
            self.weight = Parameter(values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Gives each group of channels of each sample mean 0 and variance 1 (Wu and He, 2018).

    Args:
        num_groups: how many groups the channels are divided into.
        num_channels: C, of an input (N, C, ...).
        eps: added to the variance.
        affine: whether there are a weight and a bias.
        device, dtype: those of the parameters.
        bias: whether there is a bias, if `affine`.

    Attributes:
        weight, bias: of shape (C,), at first 1 and 0; or None.

    Raises:
        ValueError: `num_channels` is no multiple of `num_groups`.
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups == 0:
            raise ZeroDivisionError("GroupNorm: num_groups must not be 0")
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(taeda.empty(num_channels, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(taeda.empty(num_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the weight 1 and the bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by a power of the mean square over neighbouring channels (Krizhevsky et al., 2012).

    x / (k + alpha * mean) ** beta, of an input (N, C, ...).

    Args:
        size: how many channels the mean is over.
        alpha, beta, k: as in the formula.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """An old form of LocalResponseNorm, for images (N, C, H, W).

    Of x / (k + alpha / size * sum) ** beta, where the sum of squares is over the channel and
    (size - 1) // 2 channels on each side.

    Args:
        size: how many channels the window spans; an even one counts as the odd one below.
        alpha, beta, k: as in the formula.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead")
        side, channels = (self.size - 1) // 2, input.size(1)
        squares = F.pad(input * input, (0, 0, 0, 0, side, side))
        total = squares.narrow(1, 0, channels)
        for shift in range(1, 2 * side + 1):
            total = total + squares.narrow(1, shift, channels)
        return input * (self.k + self.alpha / self.size * total).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
