"""taeda: a deep learning framework with PyTorch's interface.

Tensors, their operations and the gradients of those are in ``taeda``; layers in ``taeda.nn``, optimizers in ``taeda.optim``, data
loading in ``taeda.utils.data``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._C import *  # noqa: F403
from taeda._version import __version__
from taeda.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

_OPS = vars(_C.ops)
globals().update({name: op for name, op in _OPS.items() if not name.startswith("_")})
