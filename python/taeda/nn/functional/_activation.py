"""Activations: functions of each element, and softmax."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda._registry import described

__all__ = [
    "celu", "elu", "glu", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "log_softmax", "mish", "prelu", "relu", "relu6", "rrelu", "rrelu_", "selu", "silu", "softmax",
    "softmin", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip


@described
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input.

    >>> taeda.nn.functional.relu(taeda.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return ops.relu_(input) if inplace else ops.relu(input)


@described
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return hardtanh(input, 0.0, 6.0, inplace)


@described
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input. See Maas et al., 2013."""
    if inplace:
        return ops.leaky_relu_(input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


@described
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The input is of shape (N, C, ...).

    Raises:
        RuntimeError: the weight has neither 1 nor C values, or not the kind of dtype of the input.
    """
    if not isinstance(weight, Tensor):
        raise TypeError(f"prelu: weight must be Tensor, not {type(weight).__name__}")
    if input.is_floating_point() != weight.is_floating_point():
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}"
        )
    return ops.prelu(input, weight)


def _need_floats(who: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise NotImplementedError(f"{who}: not implemented for {input.dtype}, only for floats")


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """X where x > 0, else slope * x (Xu et al., 2015).

    In training, each negative element has its own slope, uniform in [lower, upper); otherwise all
    have the mean of the two.
    """
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must not be above upper, got {lower} and {upper}")
    _need_floats("rrelu", input)
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    negative = input <= 0
    drawn = taeda.empty(int(negative.sum()), dtype=taeda.float64, device=input.device)
    drawn.uniform_(lower, upper, generator=generator)
    slope = ops.ones_like(input).masked_scatter_(negative, drawn.to(input.dtype))
    return input.mul_(slope) if inplace else input * slope


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu`, in place."""
    return rrelu(input, lower, upper, training, inplace=True)


@described
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.elu_(input, alpha) if inplace else ops.elu(input, alpha)


@described
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.selu_(input) if inplace else ops.selu(input)


@described
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.celu_(input, alpha) if inplace else ops.celu(input, alpha)


@described
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.silu_(input) if inplace else ops.silu(input)


@described
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.mish_(input) if inplace else ops.mish(input)


def softsign(input: Tensor) -> Tensor:
    """X / (1 + abs(x)) of each element."""
    return input / (ops.abs(input) + 1)


@described
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """With `inplace`, overwrite the input.

    Raises:
        ValueError: min_val is above max_val.
    """
    if min_val > max_val:
        raise ValueError(
            f"hardtanh: min_val cannot be greater than max_val, got {min_val} and {max_val}"
        )
    if inplace:
        return ops.hardtanh_(input, min_val, max_val)
    return ops.hardtanh(input, min_val, max_val)


@described
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input. See Howard et al., 2019."""
    return ops.hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


@described
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    return ops.hardswish_(input) if inplace else ops.hardswish(input)


def tanhshrink(input: Tensor) -> Tensor:
    """X - tanh(x) of each element."""
    return input - ops.tanh(input)


@described
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`lambd` must not be negative: RuntimeError."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must be greater or equal to 0, got {lambd}")
    _need_floats("softshrink", input)
    return ops.softshrink(input, lambd, out=out)


@described
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """With `inplace`, overwrite the input."""
    if inplace:
        return ops.threshold_(input, threshold, value)
    return ops.threshold(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """A * sigmoid(b), a and b being the halves of the input (Dauphin et al., 2016).

    Args:
        input: its size along `dim` is even; the result's is half of it.
        dim: the dimension that is halved.

    Raises:
        RuntimeError: the size along `dim` is odd, or the input has no dimensions.
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(
            f"glu: Halving dimension must be even, but dimension {dim} is size {size}"
        )
    first, second = input.split_with_sizes([size // 2] * 2, dim)
    return first * second.sigmoid()


def _implicit_dim(name: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


@described
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Leaving `dim` out is deprecated."""
    dim = _implicit_dim("softmax", input, _stacklevel) if dim is None else dim
    return ops.softmax(input, dim) if dtype is None else ops.softmax(input, dim, dtype=dtype)


@described
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The arguments are those of `softmax`."""
    dim = _implicit_dim("log_softmax", input, _stacklevel) if dim is None else dim
    if dtype is None:
        return ops.log_softmax(input, dim)
    return ops.log_softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """softmax(-x); the arguments are those of `softmax`."""
    dim = _implicit_dim("softmin", input, _stacklevel) if dim is None else dim
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    generator: Any = None,
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2016; Maddison et al., 2016).

    Args:
        logits: unnormalised log probabilities, of any shape.
        tau: the temperature.
        hard: round the sample to one-hot, with the gradient of the soft one.
        eps: has no effect; giving another value warns.
        dim: the dimension along which probabilities sum to one.
        generator: the source of random numbers.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -ops.empty_like(logits).exponential_(generator=generator).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = ops.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
