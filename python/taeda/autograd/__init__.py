"""Gradients: running backward, writing derivatives of your own, looking at the graph.

Operations on tensors with `requires_grad=True` are recorded as they run. `backward` (or
`Tensor.backward`) then walks the record from the newest operation to the oldest and adds each
leaf's gradient to its `grad`; `grad` returns gradients instead.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda.autograd import anomaly_mode, forward_ad, function, grad_mode, graph
from taeda.autograd._run import backward, grad
from taeda.autograd._variable import Variable
from taeda.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from taeda.autograd.function import Function
from taeda.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from taeda.autograd.gradcheck import gradcheck, gradgradcheck

if TYPE_CHECKING:
    from taeda.autograd import functional, profiler

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


_is_checkpoint_valid = Variable._execution_engine.is_checkpoint_valid


def __getattr__(name: str) -> Any:
    # Rarely used names are imported on first use.
    if name in ("functional", "profiler"):
        return importlib.import_module(f"taeda.autograd.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
