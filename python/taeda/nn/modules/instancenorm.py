"""Instance normalisation layers."""

from __future__ import annotations

import warnings
from typing import Any

from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
    "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    _rank: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        with_batch, without = self._rank + 2, self._rank + 1
        if input.dim() not in (with_batch, without):
            raise ValueError(
                f"{type(self).__name__}: expected {without}D or {with_batch}D input (got "
                f"{input.dim()}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.dim() == self._rank + 2
        channels = input.size(1 if batched else 0)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"{type(self).__name__}: expected input's size at dim={1 if batched else 0} to "
                    f"match num_features ({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={1 if batched else 0} does not match num_features. You can "
                "silence this warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=2,
            )
        result = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result if batched else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Gives each channel of each sample mean 0 and variance 1 (Ulyanov et al., 2016).

    Of an input (N, C, L) or (C, L).

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how much of a batch's statistics goes into the running ones.
        affine: whether there are a weight and a bias.
        track_running_stats: keep running statistics, and use them in evaluation.
        device, dtype: those of the parameters and buffers.
        bias: whether there is a bias, if `affine`.
    """

    _rank = 1


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d for an input (N, C, H, W) or (C, H, W)."""

    _rank = 2


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d for an input (N, C, D, H, W) or (C, D, H, W)."""

    _rank = 3


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An InstanceNorm1d that takes `num_features` from its first input, and is then one.

    The arguments are those of `InstanceNorm1d`, without `num_features`; here `affine` and
    `track_running_stats` are on by default.
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An InstanceNorm2d that takes `num_features` from its first input, and is then one.

    The arguments are those of `InstanceNorm2d`, without `num_features`; here `affine` and
    `track_running_stats` are on by default.
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An InstanceNorm3d that takes `num_features` from its first input, and is then one.

    The arguments are those of `InstanceNorm3d`, without `num_features`; here `affine` and
    `track_running_stats` are on by default.
    """

    cls_to_become = InstanceNorm3d
