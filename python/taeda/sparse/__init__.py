"""Matrices most of whose elements are zero, as graph networks use them.

A tensor of layout ``taeda.sparse_coo`` keeps the indices of its elements, of shape (sparse_dim,
nnz), and their values, of shape (nnz, ...); the sizes behind nnz are dense dimensions. An element
may come several times, which means the sum, until ``coalesce()`` adds up and sorts. A matrix of
layout ``taeda.sparse_csr`` keeps where each row begins, and the elements' columns and values;
``sparse_csc`` exchanges rows and columns, ``sparse_bsr`` and ``sparse_bsc`` keep dense blocks.

What there is for them: products with dense and sparse matrices, sums, scaling, functions that
leave zero as it is, ``sum``, ``softmax``, transposition, ``index_select``, ``cat``, conversions,
files. Everything else raises NotImplementedError and names the function. Gradients flow to the
values and to dense operands; the gradient of a sparse tensor is sparse.

>>> a = taeda.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> a @ taeda.ones(3, 1)
tensor([[3.],
        [9.]])
>>> a.to_sparse_csr().crow_indices()
tensor([0, 1, 3])
"""

from typing import Any

from taeda._tensor.types import sparse_types
from taeda.sparse import _changes as _changes  # for the functions that it registers
from taeda.sparse._functions import addmm, log_softmax, mm, softmax, sum
from taeda.sparse._more import check_sparse_tensor_invariants, sampled_addmm, spdiags
from taeda.sparse._tensor import SparseTensor

_TYPES: dict[str, Any] = sparse_types()
globals().update(_TYPES)

__all__ = [
    *_TYPES,
    "SparseTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]
