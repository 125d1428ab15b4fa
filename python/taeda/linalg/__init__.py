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

from taeda._C import LinAlgError, ops

cholesky = ops.linalg_cholesky
cholesky_ex = ops.linalg_cholesky_ex
cond = ops.linalg_cond
cross = ops.linalg_cross
det = ops.linalg_det
diagonal = ops.linalg_diagonal
eig = ops.linalg_eig
eigh = ops.linalg_eigh
eigvals = ops.linalg_eigvals
eigvalsh = ops.linalg_eigvalsh
householder_product = ops.linalg_householder_product
inv = ops.linalg_inv
inv_ex = ops.linalg_inv_ex
ldl_factor = ops.linalg_ldl_factor
ldl_factor_ex = ops.linalg_ldl_factor_ex
ldl_solve = ops.linalg_ldl_solve
lstsq = ops.linalg_lstsq
lu = ops.linalg_lu
lu_factor = ops.linalg_lu_factor
lu_factor_ex = ops.linalg_lu_factor_ex
lu_solve = ops.linalg_lu_solve
matmul = ops.linalg_matmul
matrix_exp = ops.linalg_matrix_exp
matrix_norm = ops.linalg_matrix_norm
matrix_power = ops.linalg_matrix_power
matrix_rank = ops.linalg_matrix_rank
multi_dot = ops.linalg_multi_dot
norm = ops.linalg_norm
pinv = ops.linalg_pinv
qr = ops.linalg_qr
slogdet = ops.linalg_slogdet
solve = ops.linalg_solve
solve_ex = ops.linalg_solve_ex
solve_triangular = ops.linalg_solve_triangular
svd = ops.linalg_svd
svdvals = ops.linalg_svdvals
tensorinv = ops.linalg_tensorinv
tensorsolve = ops.linalg_tensorsolve
vander = ops.linalg_vander
vecdot = ops.linalg_vecdot
vector_norm = ops.linalg_vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
