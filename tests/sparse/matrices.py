"""Sparse matrices for the tests, and how to compare them."""

from __future__ import annotations

import numpy as np

import taeda
from taeda import sparse

COO, CSR = taeda.sparse_coo, taeda.sparse_csr
LAYOUTS = [COO, CSR]


def random_matrix(rows, columns, nnz, dtype=taeda.float64, seed=0, duplicates=True):
    """Indices in no order, some of them equal, and values."""
    rng = np.random.default_rng(seed)
    places = (
        rng.integers(0, rows * columns, nnz)
        if duplicates
        else rng.permutation(rows * columns)[:nnz]
    )
    indices = taeda.tensor(np.stack([places // columns, places % columns]).reshape(2, nnz))
    values = taeda.tensor(rng.standard_normal(nnz), dtype=taeda.float64).mul(4).to(dtype)
    return taeda.sparse_coo_tensor(indices, values, (rows, columns))


def dense_of(x):
    """The dense tensor, element by element."""
    x = x.to_sparse_coo()
    result = taeda.zeros(tuple(x.shape), dtype=x.dtype)
    for place, value in zip(x._indices().t().tolist(), x._values(), strict=True):
        result[tuple(place)] += value
    return result


def close(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    tolerance = {
        taeda.bfloat16: 2e-2,
        taeda.float16: 2e-3,
        taeda.float32: 1e-5,
        taeda.complex64: 1e-5,
    }
    t = tolerance.get(expected.dtype, 1e-10)
    wide = taeda.complex128 if expected.is_complex() else taeda.float64
    actual, expected = (x.detach().to(wide).numpy() for x in (actual, expected))
    np.testing.assert_allclose(actual, expected, rtol=t, atol=t)


def agree(actual, expected):
    if isinstance(actual, sparse.SparseTensor):
        actual = dense_of(actual)
    close(actual, expected)


SHAPES = [(3, 4, 5), (4, 3, 0), (1, 1, 1), (5, 2, 30), (0, 3, 0), (3, 0, 0), (40, 30, 200)]
