"""Instance normalisation layers."""

from taeda.nn.modules.batchnorm import _InstanceNorm

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


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
