"""torchvision's own operations, ``torch.ops.torchvision``, written in tensor operations.

torchvision compiles them against PyTorch's C++ library. Where it asks for that file under the
stand-in for torch, they are registered through `taeda.library` instead, with the same schemas, so
that torchvision's own Python (shapes without data, derivatives, autocast) works on them unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["offers", "register"]

_POOL = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_DEFORM = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_BACK = "Tensor grad, Tensor rois"
SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": f"(Tensor input, Tensor rois, {_POOL}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward": f"({_BACK}, {_POOL}, {_SHAPE}, int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool": f"(Tensor input, Tensor rois, {_POOL}) -> (Tensor, Tensor)",
    "_roi_pool_backward": f"({_BACK}, Tensor argmax, {_POOL}, {_SHAPE}) -> Tensor",
    "ps_roi_align": f"(Tensor input, Tensor rois, {_POOL}, int sampling_ratio) -> (Tensor, Tensor)",
    "_ps_roi_align_backward": f"({_BACK}, Tensor channel_mapping, {_POOL}, int sampling_ratio, "
    f"{_SHAPE}) -> Tensor",
    "ps_roi_pool": f"(Tensor input, Tensor rois, {_POOL}) -> (Tensor, Tensor)",
    "_ps_roi_pool_backward": f"({_BACK}, Tensor channel_mapping, {_POOL}, {_SHAPE}) -> Tensor",
    "deform_conv2d": f"({_DEFORM}) -> Tensor",
    "_deform_conv2d_backward": f"(Tensor grad, {_DEFORM}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version": "() -> int",
}
# Operations on quantized tensors, which taeda has not: torchvision adds shape functions to them
# when it is imported, and a call of one says that it has no implementation.
WITHOUT_KERNEL = {
    "qnms": SCHEMAS["nms"],
    "qroi_align": "(Tensor input, Tensor rois, float input_scale, int input_zero_point, "
    f"float rois_scale, int rois_zero_point, {_POOL}, int sampling_ratio, bool aligned) -> Tensor",
}


def offers(path: str) -> bool:
    """Whether a file is torchvision's compiled library of these operations."""
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) == "torchvision" and stem in ("_C", "_C_stable")


def _kernels() -> dict[str, Callable[..., Any]]:
    from . import deform, nms, position_sensitive, roi_align, roi_pool

    return {
        "nms": nms.nms,
        "roi_align": roi_align.roi_align,
        "_roi_align_backward": roi_align.roi_align_backward,
        "roi_pool": roi_pool.roi_pool,
        "_roi_pool_backward": roi_pool.roi_pool_backward,
        "ps_roi_align": position_sensitive.ps_roi_align,
        "_ps_roi_align_backward": position_sensitive.ps_roi_align_backward,
        "ps_roi_pool": position_sensitive.ps_roi_pool,
        "_ps_roi_pool_backward": position_sensitive.ps_roi_pool_backward,
        "deform_conv2d": deform.deform_conv2d,
        "_deform_conv2d_backward": deform.deform_conv2d_backward,
        "_cuda_version": lambda: -1,
    }


def register() -> None:
    """Define the operations, once. They last as long as the process."""
    from taeda import library
    from taeda.library._operator import OPERATORS, RECORDED

    if "torchvision::nms" in OPERATORS:
        return
    for name, schema in {**SCHEMAS, **WITHOUT_KERNEL}.items():
        library.define(f"torchvision::{name}", schema)
    for name, kernel in _kernels().items():
        # Differentiable as written, for a torchvision that registers no derivatives in Python.
        OPERATORS[f"torchvision::{name}"].kernels[RECORDED] = kernel
