// Matrix products of float and double by a kernel of our own: faster than BLAS from some tens of
// rows and columns on.
#pragma once

#include <cstddef>

#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/blas.h"

namespace taeda::cpu {

// As gemm; where `start` is given, it is added to every row instead of beta * c, and where
// `of_rows` is, a number of it to each row. k > 0.
template <class T>
void gemm_panels(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
                 T* c, int64_t ldc, const T* start = nullptr, const T* of_rows = nullptr);

// A right side op(b) (k x n) that is copied once, in the order in which it is read, for many
// products.
template <class T> class Panels {
 public:
  Panels(int64_t k, int64_t n, MatrixRef<T> b);

  // Rows that a product takes at a time: best a multiple of them.
  static int64_t rows_together();
  const T* data() const { return panels_.data(); }
  size_t bytes() const { return static_cast<size_t>(k_ * n_) * sizeof(T); }

  // c (m x n) = alpha * a (m x k) op(b) + beta * c, with the first n columns of op(b).
  void multiply(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, T beta, T* c,
                int64_t ldc) const;

 private:
  int64_t k_, n_;
  Scratch<T> panels_;
};

}  // namespace taeda::cpu
