"""Linear algebra: factorisations, solvers, eigenvalues, norms.

Every function takes batches of matrices: all dimensions but the last two are the batch. float32,
float64, complex64 and complex128 are computed with LAPACK; gradients are written in operations, so
that they can be differentiated again. What cannot be computed (no inverse, not positive-definite,
no convergence) raises :class:`LinAlgError`, a ``RuntimeError``, whose message names the matrix of
the batch; the functions that end in ``_ex`` return an ``info`` tensor instead.

>>> import taeda
>>> A = taeda.tensor([[4.0, 1.0], [1.0, 3.0]])
>>> taeda.linalg.solve(A, taeda.tensor([1.0, 2.0]))
tensor([0.0909, 0.6364])
>>> taeda.linalg.cholesky(A)
tensor([[2.0000, 0.0000],
        [0.5000, 1.6583]])
"""

from __future__ import annotations

from taeda._C import LinAlgError
from taeda._registry import functions

_FUNCTIONS = functions("linalg")
globals().update(_FUNCTIONS)

__all__ = ["LinAlgError", *_FUNCTIONS]
