"""Where PyTorch has the classes and functions that taeda has in other files.

A file names a class by its module. Files are written and read by PyTorch's places, so that both
libraries find what the other has written, and programs can list the names that they allow.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from taeda._C import Op

__all__ = ["names_of", "place_of"]

# Of whole modules; private parts at the end of a module's name are left out anyway.
_MODULES = {
    "nn.module": "nn.modules.module",
    "nn.modules.attention": "nn.modules.activation",
    "nn.modules.ctc": "nn.modules.loss",
    "nn.modules.linear_loss": "nn.modules.loss",
    "nn.modules.loss_base": "nn.modules.loss",
    "nn.modules.margin_loss": "nn.modules.loss",
    "nn.modules.parameter_container": "nn.modules.container",
    "nn.modules.rnn_cells": "nn.modules.rnn",
    "nn.utils.skip_init": "nn.utils.init",
    "optim.adafactor": "optim",
    "optim.lr_scheduler.base": "optim.lr_scheduler",
    "optim.lr_scheduler.combine": "optim.lr_scheduler",
    "optim.lr_scheduler.curves": "optim.lr_scheduler",
    "optim.lr_scheduler.cycles": "optim.lr_scheduler",
    "optim.lr_scheduler.factors": "optim.lr_scheduler",
    "optim.lr_scheduler.plateau": "optim.lr_scheduler",
    "optim.muon": "optim",
    "utils.data.collate": "utils.data._utils.collate",
}
_CLASSES = {
    "NonDynamicallyQuantizableLinear": "nn.modules.linear",
    "ChannelShuffle": "nn.modules.channelshuffle",
    "Fold": "nn.modules.fold",
    "PixelShuffle": "nn.modules.pixelshuffle",
    "PixelUnshuffle": "nn.modules.pixelshuffle",
    "Unfold": "nn.modules.fold",
    "Upsample": "nn.modules.upsampling",
    "UpsamplingBilinear2d": "nn.modules.upsampling",
    "UpsamplingNearest2d": "nn.modules.upsampling",
}
# The packages of which PyTorch has the same classes and functions.
_SHARED = ("amp", "autograd", "distributions", "func", "nn", "optim", "utils")


def place_of(obj: Any) -> tuple[str, str] | None:
    """PyTorch's module (without `torch.`) and name of one of taeda's classes and functions."""
    if not isinstance(obj, (type, FunctionType, Op)):
        return None
    package, _, module = str(obj.__module__).partition(".")
    if isinstance(obj, Op):  # an operation, in the module that its row says
        return None if module.startswith(("_", "ops")) else (module, obj.__name__)
    if package != "taeda" or module.partition(".")[0] not in _SHARED:
        return None
    parts = module.split(".")
    while parts[-1].startswith("_"):
        del parts[-1]
    module = ".".join(parts)
    name = obj.__qualname__
    if module.startswith("nn.modules.") and name in _CLASSES:
        return _CLASSES[name], name
    return _MODULES.get(module, module), name


def names_of(obj: Any) -> list[str]:
    """All full names under which files may know a class or a function."""
    names = [f"{obj.__module__}.{obj.__qualname__}"]
    place = place_of(obj)
    if place is not None:
        names += [".".join(filter(None, (p, *place))) for p in ("torch", "taeda")]
        if place[0] == "nn.functional":
            names.append(f"torch._C._nn.{place[1]}")
    return names


def name_to_write(obj: Any) -> tuple[str, str] | None:
    """The module and name under which `save` writes a class or a function of taeda's.

    Programs that have taeda in PyTorch's place write PyTorch's names.
    """
    place = place_of(obj)
    if place is None:
        return None
    from taeda.compat import is_installed

    package = "torch" if "torch" in sys.modules and is_installed() else "taeda"
    return ".".join(filter(None, (package, place[0]))), place[1]
