# Made by `python -m tests.stubs`. Do not edit: change an op, or tests/stubs/core.pyi.
from taeda import _ops

adaptive_avg_pool1d = _ops.adaptive_avg_pool1d
avg_pool1d = _ops.avg_pool1d
avg_pool2d = _ops.avg_pool2d
avg_pool3d = _ops.avg_pool3d
celu_ = _ops.celu_
conv1d = _ops.conv1d
conv2d = _ops.conv2d
conv3d = _ops.conv3d
conv_transpose1d = _ops.conv_transpose1d
conv_transpose2d = _ops.conv_transpose2d
conv_transpose3d = _ops.conv_transpose3d
elu_ = _ops.elu_
gelu = _ops.gelu
hardshrink = _ops.hardshrink
hardtanh_ = _ops.hardtanh_
layer_norm = _ops.layer_norm
leaky_relu_ = _ops.leaky_relu_
linear = _ops.linear
logsigmoid = _ops.logsigmoid
one_hot = _ops.one_hot
pad = _ops.pad
pdist = _ops.pdist
pixel_shuffle = _ops.pixel_shuffle
pixel_unshuffle = _ops.pixel_unshuffle
relu_ = _ops.relu_
rms_norm = _ops.rms_norm
selu_ = _ops.selu_
sigmoid = _ops.sigmoid
softplus = _ops.softplus
tanh = _ops.tanh
threshold_ = _ops.threshold_
