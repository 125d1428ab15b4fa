# Made by `python -m tests.stubs`. Do not edit: change an op, or tests/stubs/core.pyi.
from taeda import _ops
from taeda._C import LinAlgError as LinAlgError

cholesky = _ops.linalg_cholesky
cholesky_ex = _ops.linalg_cholesky_ex
cond = _ops.linalg_cond
cross = _ops.linalg_cross
det = _ops.linalg_det
diagonal = _ops.linalg_diagonal
eig = _ops.linalg_eig
eigh = _ops.linalg_eigh
eigvals = _ops.linalg_eigvals
eigvalsh = _ops.linalg_eigvalsh
householder_product = _ops.linalg_householder_product
inv = _ops.linalg_inv
inv_ex = _ops.linalg_inv_ex
ldl_factor = _ops.linalg_ldl_factor
ldl_factor_ex = _ops.linalg_ldl_factor_ex
ldl_solve = _ops.linalg_ldl_solve
lstsq = _ops.linalg_lstsq
lu = _ops.linalg_lu
lu_factor = _ops.linalg_lu_factor
lu_factor_ex = _ops.linalg_lu_factor_ex
lu_solve = _ops.linalg_lu_solve
matmul = _ops.linalg_matmul
matrix_exp = _ops.linalg_matrix_exp
matrix_norm = _ops.linalg_matrix_norm
matrix_power = _ops.linalg_matrix_power
matrix_rank = _ops.linalg_matrix_rank
multi_dot = _ops.linalg_multi_dot
norm = _ops.linalg_norm
pinv = _ops.linalg_pinv
qr = _ops.linalg_qr
slogdet = _ops.linalg_slogdet
solve = _ops.linalg_solve
solve_ex = _ops.linalg_solve_ex
solve_triangular = _ops.linalg_solve_triangular
svd = _ops.linalg_svd
svdvals = _ops.linalg_svdvals
tensorinv = _ops.linalg_tensorinv
tensorsolve = _ops.linalg_tensorsolve
vander = _ops.linalg_vander
vecdot = _ops.linalg_vecdot
vector_norm = _ops.linalg_vector_norm
