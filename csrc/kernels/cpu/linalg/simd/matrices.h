// Factors of small matrices, as many at once as a register has lanes: each lane computes with its
// own matrix, so what takes long (roots, quotients) is waited for once.
//
// Matrices lie by columns, one behind the other. What returns false has written nothing: a matrix
// holds what is not finite, or numbers too large or small for products of squares.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kSmallMatrix = 16;  // rows and columns at most

template <class T> struct MatrixLoops {
  int64_t lanes;  // matrices at once, at most

  // The k = min(m, n) singular values of each matrix, descending, and unless they are null the
  // first k left (m x k) and right vectors (k x n).
  bool (*svd)(int64_t count, int64_t m, int64_t n, const T* a, T* values, T* u, T* vh);
  // The eigenvalues of symmetric matrices, of which one triangle is read, ascending, and unless it
  // is null the eigenvectors, maybe in the same memory.
  bool (*eigh)(int64_t count, int64_t n, bool upper, const T* a, T* values, T* vectors);
  // a = P L U, whatever it holds; pivots: min(m, n) for each matrix, counted from 1. info: 0, or
  // where the first pivot of 0 is.
  void (*lu)(int64_t count, int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* info);
  // b (n x cols) := the solution of a x = b, or of a' x = b where `turned`, from these factors; the
  // next ones lie `lu_step` and `pivot_step` further on.
  void (*lu_solve)(int64_t count, int64_t n, int64_t cols, bool turned, const T* lu,
                   int64_t lu_step, const int32_t* pivots, int64_t pivot_step, T* b);
  // R in the upper triangle, reflectors below it; tau: min(m, n) for each matrix.
  bool (*qr)(int64_t count, int64_t m, int64_t n, T* a, T* tau);
  // The first n columns of the product of the k reflectors that lie in a's first columns.
  void (*q)(int64_t count, int64_t m, int64_t n, int64_t k, T* a, const T* tau);
};

struct MatrixKernels {
  MatrixLoops<float> f32;
  MatrixLoops<double> f64;
};

namespace v2 {
extern const MatrixKernels matrix_kernels;
}
namespace v3 {
extern const MatrixKernels matrix_kernels;
}
namespace v4 {
extern const MatrixKernels matrix_kernels;
}
namespace base {
extern const MatrixKernels matrix_kernels;
}

}  // namespace taeda::cpu::simd
