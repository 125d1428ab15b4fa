"""Convolutions and their transposes."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.modules.lazy import LazyModuleMixin
from taeda.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from taeda.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The base class of convolutions: arguments, parameters and repr."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        who = type(self).__name__
        if groups <= 0:
            raise ValueError(f"{who}: groups must be a positive integer, got {groups}")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(
                    f"{who}: {name} must be divisible by groups, got {channels} and {groups}"
                )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"{who}: Invalid padding string {padding!r}, should be one of 'same', 'valid'"
                )
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError(
                    f"{who}: padding='same' is not supported for strided convolutions, got "
                    f"stride={stride}"
                )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"{who}: padding_mode must be one of {_PADDING_MODES}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # Padding at each end for F.pad, for modes other than zeros.
        if padding == "same":
            totals = [d * (size - 1) for d, size in zip(dilation, kernel_size, strict=True)]
            self._reversed_padding_repeated_twice = [
                amount for total in reversed(totals) for amount in (total // 2, total - total // 2)
            ]
        elif padding == "valid":
            self._reversed_padding_repeated_twice = [0, 0] * len(kernel_size)
        else:
            self._reversed_padding_repeated_twice = list(_reverse_repeat_tuple(padding, 2))
        self.weight = Parameter(taeda.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(taeda.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        if init.scheme_of(self) != "torch":
            init.lecun_normal_(self.weight, fan_in=self._fan_in())
            if self.bias is not None:
                init.zeros_(self.bias)
            return
        # sqrt(5) as the slope makes the limit 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                limit = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -limit, limit)

    def _fan_in(self) -> float:
        """How many inputs make one output; a strided transpose spreads them out."""
        count = self.in_channels // self.groups * math.prod(self.kernel_size)
        return count / math.prod(self.stride) if self.transposed else count

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        none = (0,) * len(self.kernel_size)
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != none:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Convolution(_ConvNd):
    """A convolution; the subclass sets the number of dimensions."""

    _rank: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = _ntuple(self._rank)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation),
            False,
            each(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with a given weight and bias; for subclasses that change the weight first."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = (0,) * self._rank
        conv = (F.conv1d, F.conv2d, F.conv3d)[self._rank - 1]
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Convolution over one dimension of an input (N, C, L) or (C, L).

    Args:
        in_channels: C.
        out_channels: the output's.
        kernel_size: how many neighbours make one output.
        stride: the step of the kernel.
        padding: how much is added at both ends, "valid" for nothing, or "same" for as much as
            keeps the size.
        dilation: the distance between elements of the kernel.
        groups: into how many groups the channels are divided, each convolved on its own.
        bias: whether something is added.
        padding_mode: what is added at the ends: "zeros", "reflect", "replicate" or "circular".
        device, dtype: those of the parameters.

    Attributes:
        weight: of shape (out_channels, C / groups, kernel_size), at first uniform in ±1 / sqrt of
            how many inputs make one output.
        bias: of shape (out_channels,), likewise; or None.
    """

    _rank = 1


class Conv2d(_Convolution):
    """Convolution over two dimensions of an input (N, C, H, W) or (C, H, W).

    The arguments are those of `Conv1d`; sizes are a number, or one for H and one for W.

    >>> layer = taeda.nn.Conv2d(3, 8, kernel_size=3, padding=1)
    >>> tuple(layer(taeda.zeros(2, 3, 5, 5)).shape)
    (2, 8, 5, 5)
    """

    _rank = 2


class Conv3d(_Convolution):
    """Convolution over three dimensions of an input (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of `Conv1d`; sizes are a number, or one for each of D, H and W.
    """

    _rank = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution; the subclass sets the number of dimensions."""

    _rank: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'{type(self).__name__}: Only "zeros" padding mode is supported, got '
                f"{padding_mode!r}"
            )
        each = _ntuple(self._rank)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            each(padding),
            each(dilation),
            True,
            each(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """How much is added at one end so that the result has a given size."""
        if output_size is None:
            return self.output_padding
        rank = self._rank
        wanted = list(output_size)
        if len(wanted) == input.dim():
            wanted = wanted[-rank:]
        if len(wanted) != rank:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {rank} "
                f"or {input.dim()} elements (got {len(wanted)})"
            )
        least = [
            (size - 1) * step - 2 * pad + d * (kernel - 1) + 1
            for size, step, pad, d, kernel in zip(
                input.shape[-rank:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
        if any(
            not low <= size <= high for size, low, high in zip(wanted, least, most, strict=True)
        ):
            raise ValueError(
                f"{type(self).__name__}: requested an output size of {wanted}, but valid "
                f"sizes range from {least} to "
                f"{most} (for an input of {input.shape[-rank:]})"
            )
        return tuple(size - low for size, low in zip(wanted, least, strict=True))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        conv = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._rank - 1]
        extra = self._output_padding(input, output_size)
        return conv(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution over one dimension of an input (N, C, L) or (C, L).

    Args:
        in_channels: C.
        out_channels: the output's.
        kernel_size: to how many neighbours one input contributes.
        stride: the distance between the output positions of adjacent inputs.
        padding: how much is cut from both ends.
        output_padding: how much is added at one end.
        groups: into how many groups the channels are divided.
        bias: whether something is added.
        dilation: the distance between elements of the kernel.
        padding_mode: "zeros".
        device, dtype: those of the parameters.

    Called with `output_size`, it chooses `output_padding` itself.

    Attributes:
        weight: of shape (C, out_channels / groups, kernel_size).
        bias: of shape (out_channels,), or None.
    """

    _rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution over two dimensions of an input (N, C, H, W) or (C, H, W).

    The arguments are those of `ConvTranspose1d`; sizes are a number, or one for H and one for W.
    """

    _rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution over three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    The arguments are those of `ConvTranspose1d`; sizes are a number, or one for each of D, H, W.
    """

    _rank = 3


class _LazyConv(LazyModuleMixin):
    """Mixin of the lazy convolutions, in front of the class that each becomes."""

    def _forget_shapes(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        module: Any = self
        module.out_channels = out_channels
        module.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            module.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values, once the shapes are known."""
        module: Any = self
        if not self.has_uninitialized_params() and module.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from an input, (N, C, ...) or (C, ...)."""
        module: Any = self
        rank = module._rank
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"{type(self).__name__}: expected {rank + 1}D (unbatched) or {rank + 2}D (batched) "
                f"input, but got input of size: {list(input.shape)}"
            )
        channels = input.size(-rank - 1)
        if channels % module.groups:
            raise ValueError(
                f"{type(self).__name__}: in_channels must be divisible by groups, got {channels} "
                f"and {module.groups}"
            )
        module.in_channels = channels
        if not self.has_uninitialized_params():
            return
        module.weight.materialize(module._weight_shape())
        if module.bias is not None:
            module.bias.materialize((module.out_channels,))
        module.reset_parameters()


class _LazyConvNd(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._forget_shapes(out_channels, bias, device, dtype)


class _LazyConvTransposeNd(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._forget_shapes(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvNd, Conv1d):
    """A Conv1d that takes `in_channels` from its first input; it is then a Conv1d.

    The arguments are those of `Conv1d`, without `in_channels`.
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvNd, Conv2d):
    """A Conv2d that takes `in_channels` from its first input; it is then a Conv2d.

    The arguments are those of `Conv2d`, without `in_channels`.
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvNd, Conv3d):
    """A Conv3d that takes `in_channels` from its first input; it is then a Conv3d.

    The arguments are those of `Conv3d`, without `in_channels`.
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTransposeNd, ConvTranspose1d):
    """A ConvTranspose1d that takes `in_channels` from its first input, and is then one.

    The arguments are those of `ConvTranspose1d`, without `in_channels`.
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTransposeNd, ConvTranspose2d):
    """A ConvTranspose2d that takes `in_channels` from its first input, and is then one.

    The arguments are those of `ConvTranspose2d`, without `in_channels`.
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTransposeNd, ConvTranspose3d):
    """A ConvTranspose3d that takes `in_channels` from its first input, and is then one.

    The arguments are those of `ConvTranspose3d`, without `in_channels`.
    """

    cls_to_become = ConvTranspose3d
