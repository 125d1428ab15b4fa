"""Batches of sequences of different lengths, without padding.

A nested tensor has the sequences one after the other in a dense tensor, its ``values()``, and says
by ``offsets()`` where each begins. Its ragged dimension has a symbol for its size, such as ``j1``.
What there is for them: ops on single elements, products with matrices, attention, normalisation,
softmax, reductions, views of the other dimensions, embeddings, files. Everything else raises
NotImplementedError and names the function. Gradients flow through all of it.

>>> x = taeda.nested.nested_tensor([taeda.ones(2, 4), taeda.ones(3, 4)], layout=taeda.jagged)
>>> taeda.nn.Linear(4, 8)(x).shape[2]
8
>>> x.sum(1)
tensor([[2., 2., 2., 2.],
        [3., 3., 3., 3.]])

Tensors go together that share their offsets: results of one another, and those that
``nested_tensor_from_jagged`` makes with the same ``offsets``. In strided layout, which is the
default as in PyTorch, they go together where the lengths are equal, and have no ``shape``.
"""

from taeda.nested import _products as _products  # for the functions that they register
from taeda.nested import _reduce as _reduce
from taeda.nested import _shape as _shape
from taeda.nested._make import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from taeda.nested._tensor import NestedTensor

__all__ = [
    "NestedTensor",
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
