// What the families of linear algebra share: checks of their arguments, the layout that LAPACK
// reads, reports of failure, and the few matrix functions that derivatives are written in.
#pragma once

#include "autograd/backward.h"
#include "kernels/cpu/linalg/lapack.h"
#include "ops/shape_util.h"

namespace taeda {

namespace lapack = cpu::lapack;

struct LinAlgError : Error {  // taeda.linalg.LinAlgError
  using Error::Error;
};

// ---- checks; `what` is the function's public name, such as "linalg.inv" ----

// Batches of matrices of a dtype that LAPACK computes in.
void check_matrix(const char* what, const Tensor& a, const char* argument = "A");
void check_square(const char* what, const Tensor& a, const char* argument = "A");
void check_same_dtype(const char* what, const Tensor& a, const Tensor& b, const char* a_name = "A",
                      const char* b_name = "B");
// Throws what `message` says of the first matrix whose `info` (int32, one per matrix) is not 0:
// message(info) where the matrices are a batch, its place is put before that.
void check_info(const char* what, const Tensor& info, std::string (*message)(int));
// LinAlgError where a matrix holds NaN or an infinity.
void check_finite(const char* what, const Tensor& a);

// ---- shapes ----

inline DimsRef batch_sizes(const Tensor& a) { return a.sizes().first(a.sizes().size() - 2); }
// The sizes of a batch of matrices, of vectors, or of numbers.
Dims join(DimsRef batch, std::initializer_list<int64_t> more);
inline int64_t short_side(const Tensor& a) { return std::min(a.size(-2), a.size(-1)); }
inline lapack::Shape lapack_shape(const Tensor& a) {
  return {numel_of(batch_sizes(a)), a.size(-2), a.size(-1)};
}
// a and b with their batches broadcast to one.
std::pair<Tensor, Tensor> broadcast_batches(const char* what, const Tensor& a, const Tensor& b);

// ---- layout, below the door ----

// Matrices that lie by columns, one behind the other: what LAPACK reads and writes.
Tensor empty_by_columns(DimsRef sizes, Options o);
Tensor by_columns(const Tensor& a);                 // a fresh copy
Tensor readable_by_columns(const Tensor& a);        // `a` itself where it lies so already
Tensor raw_transpose(const Tensor& a);              // no history
Tensor raw_expand(const Tensor& a, DimsRef sizes);  // no history
void raw_identity(const Tensor& a);                 // fills matrices that lie by columns
inline Tensor empty_like_info(const Tensor& a) {
  return raw_zeros(batch_sizes(a), {DType::Int32, a.device()});
}
inline int32_t* as_int(const Tensor& t) { return t.data_as<int32_t>(); }

// ---- through the door ----

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

// Written in other ops; public in taeda.linalg, or at the top level and as a method.
inline constexpr Traits kLinalg{
    .forms = kFunction | kOut, .composite = true, .module = "linalg", .heavy = true};
inline constexpr Traits kLinalgMethod{.forms = kPublic | kOut, .composite = true, .heavy = true};

// Whether a gradient of `t` will be asked for: some functions compute more then.
inline bool wants_grad(const Tensor& t) {
  return (t.requires_grad_flag() && modes.grad) || (modes.always & kForwardLayer);
}

}  // namespace taeda
