"""The marks of where a model would be quantised. Quantising it is missing: so is ``convert``.

>>> import taeda
>>> stub = taeda.ao.quantization.QuantStub()
>>> stub(taeda.ones(2))
tensor([1., 1.])
"""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda.nn import Module
from taeda.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "DeQuantStub",
    "QuantStub",
    "QuantWrapper",
    "fuse_conv_bn",
    "fuse_linear_bn",
]


class QuantStub(Module):
    """Where quantised numbers would begin; returns its input.

    Args:
        qconfig: how they would be quantised; kept as an attribute where it is given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input as it is."""
        return x


class DeQuantStub(Module):
    """Where quantised numbers would end; returns its input.

    Args:
        qconfig: how they would have been quantised; kept as an attribute where it is given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input as it is."""
        return x


class QuantWrapper(Module):
    """A module between the two stubs.

    Args:
        module: what would be quantised.
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.quant = QuantStub(getattr(module, "qconfig", None))
        self.dequant = DeQuantStub(getattr(module, "qconfig", None))
        self.module = module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """What the module gives."""
        return self.dequant(self.module(self.quant(X)))


def _check_evaluated(who: str, is_qat: bool, first: Module, bn: Module) -> None:
    if first.training != bn.training:
        raise AssertionError(f"{who}: both modules must be in the same mode, train or eval")
    if is_qat or first.training:
        raise NotImplementedError(
            f"{who}: modules are joined for evaluation; there is no training for quantised numbers"
        )


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """Join a convolution and the batch normalisation behind it into a convolution.

    Args:
        is_qat: whether for training with quantised numbers, which is missing.
        conv: a convolution, in evaluation mode.
        bn: the normalisation, in evaluation mode.

    Raises:
        NotImplementedError: for training.
    """
    _check_evaluated("fuse_conv_bn", is_qat, conv, bn)
    return fuse_conv_bn_eval(conv, bn)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """Join a linear layer and the batch normalisation behind it into a linear layer.

    Args:
        is_qat: whether for training with quantised numbers, which is missing.
        linear: a linear layer, in evaluation mode.
        bn: the normalisation, in evaluation mode.

    Raises:
        NotImplementedError: for training.
    """
    _check_evaluated("fuse_linear_bn", is_qat, linear, bn)
    return fuse_linear_bn_eval(linear, bn)
