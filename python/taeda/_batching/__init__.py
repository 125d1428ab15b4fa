"""The implementation of `taeda.vmap`: batched tensors, and a batching rule for each operation.

A batched tensor is a Python object that hides the first dimension of another tensor, its value. It
has the shape, the dtype and the strides of one element of the batch, so that code that
reads them behaves as without vmap. The dispatcher passes operations on batched tensors here, with
their arguments parsed, and the rule computes with the values. Those record gradients and carry
tangents as usual: vmap is above autograd and independent of it. In nested vmaps the value of a
batched tensor is a batched tensor.

`table` finds the rule of an operation. Most operations say it in their rows: composite ones run as
they are, elementwise ones share one rule, and others name one by the trait `vmap`. The rest have a
function with the decorator `rule`.

Nothing here is imported before the first call of vmap.
"""

from taeda import _C
from taeda._batching import gradients
from taeda._batching.rules import make_rule
from taeda._batching.tensor import BatchedTensor
from taeda.autograd import _run

_C._set_batching(BatchedTensor, make_rule)
_run.batching = gradients

__all__ = ["BatchedTensor"]
