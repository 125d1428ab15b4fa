"""What `taeda.vmap` is made of: batched tensors, and a rule for each operation on them.

A batched tensor is a Python object that hides the first dimension of another tensor, its value. It
has the shape, the dtype and the strides of one element of the batch, so that code that asks for them
sees what it would see without vmap. An operation on batched tensors comes here from the one door,
with its arguments parsed, and its rule computes with the values. Those record gradients and carry
tangents as usual: vmap lies above autograd and needs nothing from it. Within a vmap inside of
another, the value of a batched tensor is a batched tensor.

`table` says which rule an operation has. Most need no entry: those that are composed of others are
run as they are, and what is computed element by element has one rule in common.

Nothing here is imported before the first call of vmap.
"""

from taeda import _C
from taeda._batching import gradients
from taeda._batching.dispatch import make_rule
from taeda._batching.tensor import BatchedTensor
from taeda.autograd import _run

_C._set_batching(BatchedTensor, make_rule)
_run.batching = gradients

__all__ = ["BatchedTensor"]
