"""The functions that are operations of the core, as there is nothing to add to them."""

from __future__ import annotations

from taeda._C import ops
from taeda._registry import functions

_FUNCTIONS = functions("nn.functional")
globals().update(_FUNCTIONS)

# Functions of taeda itself, and forms in place of those above.
adaptive_avg_pool1d = ops.adaptive_avg_pool1d
avg_pool1d = ops.avg_pool1d
celu_ = ops.celu_
conv1d = ops.conv1d
conv2d = ops.conv2d
conv3d = ops.conv3d
conv_transpose1d = ops.conv_transpose1d
conv_transpose2d = ops.conv_transpose2d
conv_transpose3d = ops.conv_transpose3d
elu_ = ops.elu_
hardshrink = ops.hardshrink
hardtanh_ = ops.hardtanh_
layer_norm = ops.layer_norm
leaky_relu_ = ops.leaky_relu_
pdist = ops.pdist
pixel_shuffle = ops.pixel_shuffle
pixel_unshuffle = ops.pixel_unshuffle
relu_ = ops.relu_
rms_norm = ops.rms_norm
selu_ = ops.selu_
sigmoid = ops.sigmoid
tanh = ops.tanh
threshold_ = ops.threshold_

__all__ = [
    *_FUNCTIONS,
    "adaptive_avg_pool1d", "avg_pool1d", "celu_", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "elu_", "hardshrink", "hardtanh_", "layer_norm",
    "leaky_relu_", "pdist", "pixel_shuffle", "pixel_unshuffle", "relu_", "rms_norm", "selu_",
    "sigmoid", "tanh", "threshold_",
]  # fmt: skip
