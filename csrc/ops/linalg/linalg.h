// Helpers of the linear algebra ops: argument checks, LAPACK's memory layout, error reports, and
// the matrix functions that derivatives use.
#pragma once

#include "autograd/backward.h"
#include "kernels/linalg.h"
#include "ops/core/shape_util.h"

namespace taeda {

struct LinAlgError : Error {  // taeda.linalg.LinAlgError
  using Error::Error;
};

constexpr uint32_t kFunctionOut = kFunction | kOut;

// ---- checks; `what` is the function's public name, such as "linalg.inv" ----

// Checks that `a` is a batch of matrices of a dtype that LAPACK supports.
void check_matrix(const char* what, const Tensor& a, const char* argument = "A");
void check_square(const char* what, const Tensor& a, const char* argument = "A");
void check_same_dtype(const char* what, const Tensor& a, const Tensor& b, const char* a_name = "A",
                      const char* b_name = "B");
// Throws message(info) for the first matrix whose `info` (int32, one per matrix) is not 0, with the
// index of the matrix in front if there is a batch.
void check_info(const char* what, const Tensor& info, std::string (*message)(int));
// LinAlgError where a matrix holds NaN or an infinity.
void check_finite(const char* what, const Tensor& a);

// ---- shapes ----

inline DimsRef batch_sizes(const Tensor& a) { return a.sizes().first(a.sizes().size() - 2); }
// The sizes of a batch of matrices, of vectors, or of numbers.
Dims join(DimsRef batch, std::initializer_list<int64_t> more);
inline int64_t short_side(const Tensor& a) { return std::min(a.size(-2), a.size(-1)); }
inline MatrixBatch lapack_shape(const Tensor& a) {
  return {numel_of(batch_sizes(a)), a.size(-2), a.size(-1)};
}
// a and b with their batches broadcast to one.
std::pair<Tensor, Tensor> broadcast_batches(const char* what, const Tensor& a, const Tensor& b);

// ---- layout, without dispatch ----

// Contiguous batches of column-major matrices, as LAPACK reads and writes them.
Tensor empty_column_major(DimsRef sizes, Options o);
Tensor column_major_copy(const Tensor& a);          // a new copy
Tensor as_column_major(const Tensor& a);            // `a` itself if it is column-major already
Tensor raw_transpose(const Tensor& a);              // no history
Tensor raw_expand(const Tensor& a, DimsRef sizes);  // no history
void raw_identity(const Tensor& a);                 // fills column-major matrices
inline Tensor empty_like_info(const Tensor& a) {
  return raw_zeros(batch_sizes(a), {DType::Int32, a.device()});
}

// a = P L U as LAPACK gives it: L and U in one matrix, the exchanges of rows, and a number for each
// matrix, 0 or the place of the first zero on U's diagonal.
struct LuFactor {
  Tensor lu, pivots, info;
};
LuFactor lu_factorize(const char* what, const Tensor& a);

// ---- dispatched ops ----

Tensor adjoint(const Tensor& a);  // conjugate transpose
Tensor mT(const Tensor& a);       // transpose of the last two dimensions
Tensor tril(const Tensor& a, int64_t diagonal = 0);
Tensor triu(const Tensor& a, int64_t diagonal = 0);
Tensor diagonal_of(const Tensor& a);       // of each matrix
Tensor as_diagonal(const Tensor& values);  // matrices with these diagonals
Tensor identity(int64_t n, Options o);
Tensor real_part(const Tensor& a);
// The solution of a x = b, or of x a = b unless `left`, for triangular a.
Tensor triangular_solution(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                           bool unit = false);

// ---- rows of the table ----

// Composite ops; public in taeda.linalg, or at the top level and as a method.
inline constexpr Traits kLinalg{
    .forms = kFunction | kOut, .composite = true, .module = "linalg", .heavy = true};
inline constexpr Traits kLinalgMethod{.forms = kPublic | kOut, .composite = true, .heavy = true};

// Whether a gradient of `t` may be needed: some functions then compute more.
inline bool wants_grad(const Tensor& t) {
  return (t.requires_grad_flag() && modes.grad) || (modes.always & kForwardLayer);
}

}  // namespace taeda
