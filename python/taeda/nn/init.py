"""Initial values for parameters. Each function fills a tensor in place and returns it.

With the same seed, the numbers are those of PyTorch.

`defaults` chooses how modules set up their parameters: as PyTorch's do, or in a newer way.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import taeda
from taeda._C import Generator, Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "defaults", "dirac", "dirac_", "eye", "eye_",
    "kaiming_normal", "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "lecun_normal_",
    "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "residual_output_", "scheme_of",
    "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal",
    "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

SCHEMES = ("torch", "2026")
_scheme = "torch"


class defaults:
    """Choose how modules set up their parameters, from now on or within a context.

    Args:
        name: "torch" for what PyTorch's modules do, which is the default. "2026" for: weights from
            a normal distribution cut off at two standard deviations, with variance 1 / fan-in
            (`lecun_normal_`); biases 0; the state's weights of recurrent layers orthogonal, and
            the bias of an LSTM's forget gate 1 (Jozefowicz et al., 2015); embeddings of variance
            1 / size; and the last layer of each residual branch 0 where a module declares it (see
            `residual_output_`), so that a new block hands on its input (Zhang et al., 2019).

    A module's repr and the metadata of its state_dict name the way where it is not "torch".

    Raises:
        ValueError: there is no such name.

    >>> with taeda.nn.init.defaults("2026"):
    ...     taeda.nn.Linear(2, 3)
    Linear(in_features=2, out_features=3, bias=True, init='2026')
    >>> taeda.nn.Linear(2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, name: str) -> None:
        global _scheme
        if name not in SCHEMES:
            raise ValueError(f"nn.init.defaults: name must be one of {SCHEMES}, got {name!r}")
        self.name = name
        self.before = _scheme
        _scheme = name

    def __enter__(self) -> defaults:
        return self

    def __exit__(self, *details: Any) -> None:
        global _scheme
        _scheme = self.before


def scheme_of(module: Any) -> str:
    """Return the name given to `defaults`, and note on a module that it is set up that way.

    For `reset_parameters` of modules.
    """
    module.__dict__.pop("_init_scheme", None)
    if _scheme != "torch":
        module.__dict__["_init_scheme"] = _scheme
    return _scheme


def residual_output_(*layers: Any) -> None:
    """Declare layers to be the last of residual branches; `defaults("2026")` makes them 0.

    Call it where a module has made such layers. Otherwise nothing happens to them.

    Args:
        *layers: modules; their parameters are filled with zeros.

    >>> with taeda.nn.init.defaults("2026"):
    ...     layer = taeda.nn.Linear(2, 2)
    ...     taeda.nn.init.residual_output_(layer)
    >>> int(layer.weight.count_nonzero())
    0
    """
    if _scheme != "torch":
        for layer in layers:
            for parameter in layer.parameters():
                zeros_(parameter)


_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_UNIT_GAINS = {
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "sigmoid",
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor that keeps the variance through a nonlinearity.

    Args:
        nonlinearity: "linear", "conv1d" and so on, "sigmoid", "tanh", "relu", "leaky_relu" or
            "selu".
        param: the slope of leaky_relu, by default 0.01.

    Raises:
        ValueError: another name, or a slope that is no number.

    >>> taeda.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _UNIT_GAINS:
        return 1.0
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"calculate_gain: Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"calculate_gain: negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _need_tensor(who: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise AttributeError(f"{who}: tensor must be a Tensor, got {type(tensor).__name__}")


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers drawn uniformly from [a, b)."""
    _need_tensor("uniform_", tensor)
    with taeda.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers drawn from a normal distribution."""
    _need_tensor("normal_", tensor)
    with taeda.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers drawn from a normal distribution, those outside [a, b] drawn again.

    Args:
        tensor: the tensor to fill.
        mean, std: those of the whole distribution.
        a, b: the limits, as values (not in units of `std`).
        generator: the source of random numbers; by default the global one.

    Warns:
        UserWarning: the mean lies more than two `std` outside [a, b].
    """
    _need_tensor("trunc_normal_", tensor)
    if std == 0:
        raise ZeroDivisionError("trunc_normal_: std must not be 0")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor
    low, high = (a - mean) / std, (b - mean) / std
    often = _normal_cdf(high) - _normal_cdf(low) > 0.3
    top = min(max(0.0, low), high)  # where between the limits the density is greatest

    def draw(values: Tensor) -> Tensor:
        """Draw values; return which are good."""
        if often:
            values.normal_(mean, std, generator=generator)
            return (values >= a) & (values <= b)
        # Few normal numbers would fall between the limits, so thin out uniform ones instead.
        values.uniform_(a, b, generator=generator)
        z = (values - mean) / std
        share = taeda.empty_like(values).uniform_(generator=generator)
        return share <= (-0.5 * (z * z - top * top)).exp()

    with taeda.no_grad():
        values = taeda.empty_like(tensor)
        good = draw(values)
        tensor.copy_(values)
        while not bool(good.all()):
            good_now = draw(values)
            tensor.copy_(taeda.where(good, tensor, values))
            good = good | good_now
        return tensor


def _normal_cdf(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    _need_tensor("constant_", tensor)
    with taeda.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    _need_tensor("ones_", tensor)
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    _need_tensor("zeros_", tensor)
    with taeda.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Raises:
        ValueError: the tensor has not 2 dimensions.
    """
    _need_tensor("eye_", tensor)
    if tensor.dim() != 2:
        raise ValueError(f"eye_: Only tensors with 2 dimensions are supported, got {tensor.dim()}")
    with taeda.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution's weight hand on its input: channel i to channel i of each group.

    Args:
        tensor: a weight with 3, 4 or 5 dimensions.
        groups: those of the convolution.

    Raises:
        ValueError: another number of dimensions, or the first is no multiple of `groups`.
    """
    _need_tensor("dirac_", tensor)
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"dirac_: Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.dim()}"
        )
    out_channels, in_channels = tensor.shape[:2]
    if groups == 0:
        raise ZeroDivisionError("dirac_: groups must not be 0")
    if out_channels % groups:
        raise ValueError(
            f"dirac_: dim 0 must be divisible by groups, got {out_channels} and {groups}"
        )
    per_group = out_channels // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with taeda.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                index = (group * per_group + channel, channel, *center)
                tensor[index] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor, who: str = "nn.init") -> tuple[int, int]:
    """How many inputs make one output of a layer with this weight, and the reverse."""
    if tensor.dim() < 2:
        raise ValueError(
            f"{who}: Fan in and fan out can not be computed for tensor with fewer than 2 "
            f"dimensions, got shape {list(tensor.shape)}"
        )
    field = prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str, who: str = "nn.init") -> int:
    if not isinstance(mode, str):
        raise AttributeError(f"{who}: mode must be a string, got {type(mode).__name__}")
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(
            f"{who}: Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor, who)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill uniformly so that gradients and activations keep their variance.

    The limit is gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Args:
        tensor: a weight with 2 dimensions or more.
        gain: a factor, such as `calculate_gain` returns.
        generator: the source of random numbers; by default the global one.

    Raises:
        ValueError: the tensor has fewer than 2 dimensions.
    """
    _need_tensor("xavier_uniform_", tensor)
    std = gain * math.sqrt(
        2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor, "xavier_uniform_")))
    )
    limit = math.sqrt(3.0) * std
    return uniform_(tensor, -limit, limit, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """`xavier_uniform_` with a normal distribution: std = gain * sqrt(2 / (fan_in + fan_out))."""
    _need_tensor("xavier_normal_", tensor)
    std = gain * math.sqrt(
        2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor, "xavier_normal_")))
    )
    return normal_(tensor, 0.0, std, generator)


# The standard deviation that is left of a normal distribution cut off at two of them.
_CUT_STD = 0.87962566103423978


def lecun_normal_(
    tensor: Tensor,
    gain: float = 1.0,
    fan_in: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of variance gain**2 / fan_in, none beyond two deviations.

    The deviation of the uncut distribution is larger by what the cut takes away (LeCun et al.,
    1998, for the variance).

    Args:
        tensor: a weight.
        gain: a factor, such as `calculate_gain` returns.
        fan_in: how many inputs make one output; by default that of a weight (outputs, inputs, ...).
        generator: the source of random numbers; by default the global one.

    Raises:
        ValueError: `fan_in` is not given and the tensor has fewer than 2 dimensions.
    """
    _need_tensor("lecun_normal_", tensor)
    if fan_in is None:
        fan_in = _calculate_fan_in_and_fan_out(tensor, "lecun_normal_")[0]
    if tensor.numel() == 0:
        return tensor
    std = gain / math.sqrt(max(fan_in, 1)) / _CUT_STD
    return trunc_normal_(tensor, 0.0, std, -2 * std, 2 * std, generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly so that activations keep their variance through rectifiers.

    The limit is gain * sqrt(3 / fan) (He et al., 2015).

    Args:
        tensor: a weight with 2 dimensions or more, as for `x @ weight.T`.
        a: the slope of leaky_relu.
        mode: "fan_in" to keep it going forward, "fan_out" going backward.
        nonlinearity: what follows the layer; see `calculate_gain`.
        generator: the source of random numbers; by default the global one.

    Raises:
        ValueError: fewer than 2 dimensions, or an unknown mode or nonlinearity.
    """
    _need_tensor("kaiming_uniform_", tensor)
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode, "kaiming_uniform_")
    limit = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return uniform_(tensor, -limit, limit, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """`kaiming_uniform_` with a normal distribution: std = gain / sqrt(fan)."""
    _need_tensor("kaiming_normal_", tensor)
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode, "kaiming_normal_")
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def _qr_dtype(dtype: Any) -> Any:
    return taeda.float32 if dtype in (taeda.float16, taeda.bfloat16) else dtype


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a matrix whose rows, or columns, are orthogonal (Saxe et al., 2013).

    Args:
        tensor: with 2 dimensions or more; those after the first are taken as one.
        gain: a factor.
        generator: the source of random numbers; by default the global one.

    Raises:
        ValueError: the tensor has fewer than 2 dimensions.
    """
    _need_tensor("orthogonal_", tensor)
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_: Only tensors with 2 or more dimensions are supported, got {tensor.dim()}"
        )
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    with taeda.no_grad():
        rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
        values = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            values = values.t()
        q, r = taeda.linalg.qr(values.to(_qr_dtype(values.dtype)))
        q = (q * r.diagonal().sign()).to(values.dtype)  # uniform only with a positive diagonal
        if rows < columns:
            q = q.t()
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with normal numbers, and with zeros at random in each column (Martens, 2010).

    Args:
        tensor: with 2 dimensions.
        sparsity: the share of each column that is zero.
        std: the standard deviation of the rest.
        generator: the source of random numbers, for the places too; by default the global one.

    Raises:
        ValueError: the tensor has not 2 dimensions.
    """
    _need_tensor("sparse_", tensor)
    if tensor.dim() != 2:
        raise ValueError(
            f"sparse_: Only tensors with 2 dimensions are supported, got {tensor.dim()}"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with taeda.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = taeda.randperm(rows, generator=generator)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _under_old_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{new[:-1]} is now deprecated in favor of nn.init.{new}.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = new[:-1]
    old.__doc__ = f"Deprecated: `{new}` under its old name."
    return old


uniform = _under_old_name(uniform_)
normal = _under_old_name(normal_)
constant = _under_old_name(constant_)
eye = _under_old_name(eye_)
dirac = _under_old_name(dirac_)
xavier_uniform = _under_old_name(xavier_uniform_)
xavier_normal = _under_old_name(xavier_normal_)
kaiming_uniform = _under_old_name(kaiming_uniform_)
kaiming_normal = _under_old_name(kaiming_normal_)
orthogonal = _under_old_name(orthogonal_)
sparse = _under_old_name(sparse_)
