"""Batch normalisation, and what instance normalisation shares with it."""

from __future__ import annotations

from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.modules.lazy import LazyModuleMixin, give_shape
from taeda.nn.parameter import (
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
)

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Base of batch and instance normalisation: parameters, running statistics and loading."""

    _version = 2  # 1 had no num_batches_tracked

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(taeda.empty(num_features, **options))
            if bias:
                self.bias = Parameter(taeda.empty(num_features, **options))
        if track_running_stats:
            self.register_buffer("running_mean", taeda.zeros(num_features, **options))
            self.register_buffer("running_var", taeda.ones(num_features, **options))
            count = taeda.tensor(0, dtype=taeda.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if not self.track_running_stats:
            return
        for buffer, start in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            assert buffer is not None, "statistics are tracked"
            buffer.fill_(start)

    def reset_parameters(self) -> None:
        """Forget the running statistics, and make the weight 1 and the bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _check_input_dim")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            keep = own is not None and not own.is_meta
            state_dict[key] = own if keep else taeda.tensor(0, dtype=taeda.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        count = self.num_batches_tracked if self.training and self.track_running_stats else None
        if count is not None and self.momentum is None:  # a plain average of all batches
            momentum = 1.0 / (float(count) + 1.0)
        # Without running statistics, those of the batch are used in evaluation too.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        result = F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )
        if count is not None:  # a batch that was refused does not count
            count.add_(1)
        return result


class BatchNorm1d(_BatchNorm):
    """Gives each channel mean 0 and variance 1 over the batch, then scales and shifts it.

    Of an input (N, C) or (N, C, L) (Ioffe and Szegedy, 2015).

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how much of a batch's statistics goes into the running ones; None averages all
            batches.
        affine: whether there are a weight and a bias.
        track_running_stats: keep running statistics, and use them in evaluation.
        device, dtype: those of the parameters and buffers.
        bias: whether there is a bias, if `affine`.

    Attributes:
        weight, bias: of shape (C,), at first 1 and 0.
        running_mean, running_var: of shape (C,), at first 0 and 1.
        num_batches_tracked: how many batches they are made of.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: expected 2D or 3D input (got {input.dim()}D input)"
            )


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d for an input (N, C, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"{type(self).__name__}: expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d for an input (N, C, D, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"{type(self).__name__}: expected 5D input (got {input.dim()}D input)")


class _LazyNormBase(LazyModuleMixin):
    """Mixin of the lazy normalisations, in front of the class that each becomes."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # With no feature there is nothing to keep: the true parameters are put in afterwards.
        super().__init__(0, eps, momentum, False, False)
        module: Any = self
        module.affine = affine
        module.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            module.weight = UninitializedParameter(**options)
            if bias:
                module.bias = UninitializedParameter(**options)
        if track_running_stats:
            module.running_mean = UninitializedBuffer(**options)
            module.running_var = UninitializedBuffer(**options)
            module.num_batches_tracked = taeda.tensor(0, dtype=taeda.int64, device=device)

    def reset_parameters(self) -> None:
        """Forget the running statistics and parameters, once their shapes are known."""
        module: Any = self
        if not self.has_uninitialized_params() and module.num_features:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of features from an input."""
        module: Any = self
        module._check_input_dim(input)
        batched = input.dim() > getattr(module, "_rank", 0) + 1
        module.num_features = input.size(1 if batched else 0)
        if self.has_uninitialized_params():
            for name, value in [*module._parameters.items(), *module._buffers.items()]:
                if is_lazy(value):
                    give_shape(module, name, (module.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d that takes `num_features` from its first input; it is then a BatchNorm1d.

    The arguments are those of `BatchNorm1d`, without `num_features`.
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d that takes `num_features` from its first input; it is then a BatchNorm2d.

    The arguments are those of `BatchNorm2d`, without `num_features`.
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d that takes `num_features` from its first input; it is then a BatchNorm3d.

    The arguments are those of `BatchNorm3d`, without `num_features`.
    """

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the statistics of the batches of all processes.

    In one process, and in evaluation, that is the batch normalisation of an input (N, C, ...) with
    2 dimensions or more. Batches of processes may differ in size.

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias: as for
            `BatchNorm1d`.
        process_group: the processes, all by default.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"{type(self).__name__}: expected at least 2D input (got {input.dim()}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        from taeda import distributed

        batch_counts = self.training or self.running_mean is None
        if not batch_counts or not distributed.is_initialized():
            return super().forward(input)
        if distributed.get_world_size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        return self._forward_of_all(input)

    def _forward_of_all(self, input: Tensor) -> Tensor:
        """Normalise with the mean and the variance of the batches of all processes."""
        from taeda.distributed.nn import functional

        dims = [0, *range(2, input.dim())]
        shape = [1, -1] + [1] * (input.dim() - 2)
        x = input.float() if input.dtype in (taeda.float16, taeda.bfloat16) else input
        mean = x.mean(dims)
        # Means and sums of squares of parts are combined as by Chan et al. (1979).
        squares = (x - mean.view(shape)).square().sum(dims)
        count = x.new_full((1,), x.numel() // x.size(1))
        gathered = functional.all_gather(taeda.cat([mean, squares, count]), self.process_group)
        rows = taeda.stack(list(gathered))
        channels = x.size(1)
        means, sums, counts = rows[:, :channels], rows[:, channels:-1], rows[:, -1:]
        total = counts.sum()
        whole = (means * counts).sum(0) / total
        squares = (sums + counts * (means - whole).square()).sum(0)
        var = squares / total
        self._track(whole.detach(), (squares / (total - 1)).detach())
        scale = (var + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        y = (x - whole.view(shape)) * scale.view(shape)
        y = y if self.bias is None else y + self.bias.view(shape)
        return y.to(input.dtype)

    def _track(self, mean: Tensor, var: Tensor) -> None:
        if not self.training or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = self.momentum
        if momentum is None:
            momentum = 1.0 / float(self.num_batches_tracked)
        with taeda.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
            self.running_var.lerp_(var.to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace the batch normalisations in a module, and return it, or what replaces it.

        Args:
            module: a module; those below it are replaced in place.
            process_group: the processes, all by default.
        """
        converted = module
        if isinstance(module, _BatchNorm):
            sync = cls(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            sync.weight, sync.bias = module.weight, module.bias
            sync.running_mean, sync.running_var = module.running_mean, module.running_var
            sync.num_batches_tracked = module.num_batches_tracked
            sync.training = module.training
            converted = sync
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
