"""Helpers for training: gradient clipping, and parameters as one vector."""

from taeda.nn.utils import rnn
from taeda.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from taeda.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from taeda.nn.utils.skip_init import skip_init

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "skip_init",
    "vector_to_parameters",
]
