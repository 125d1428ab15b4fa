// Matrix products on plain memory, row-major. This is the seam to OpenBLAS: no other file knows of
// it.
//
// Products are cut into tiles by their sizes alone, and each tile is one single-threaded call, so
// the same product has the same bits for any number of threads. Products of float and double of
// some size go to a kernel of our own (gemm_panels.h).
#pragma once

#include <cstdint>

namespace taeda::cpu {

enum class Trans : uint8_t {
  No,
  Yes,
  Conj
};  // Conj: conjugate transpose (for real types the transpose)

// A matrix is given with the distance between its rows as it lies in memory; op(X) is X, its
// transpose or its conjugate transpose.
template <class T> struct MatrixRef {
  const T* data;
  int64_t stride;
  Trans trans = Trans::No;
};

// c (m x n, rows `ldc` apart) = alpha * op(a) (m x k) * op(b) (k x n) + beta * c; c is not read
// where beta is 0. T: float, double, std::complex<float>, std::complex<double>.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta, T* c,
          int64_t ldc);

// c = op(a) op(b), and `start` (n elements) added to every row.
template <class T>
void gemm_onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
               T* c, int64_t ldc);

// c = op(a) op(b), and to each row one of `start` (m elements) added.
template <class T>
void gemm_onto_rows(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
                    T* c, int64_t ldc);

// gemm over a batch: matrix i starts i * step elements after the first (a step of 0 repeats
// it).
template <class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a,
                  int64_t a_step, MatrixRef<T> b, int64_t b_step, T beta, T* c, int64_t ldc,
                  int64_t c_step);

// Without BLAS (gemm_integer.cpp). T: the integers (arithmetic wraps around). Same meaning, alpha =
// 1 and beta = 0.
template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, T* c,
                  int64_t ldc);

// y (n) = alpha * op(a) x + beta * y, with x and y `x_step` and `y_step` apart.
template <class T>
void gemv(Trans trans, int64_t rows, int64_t cols, T alpha, const T* a, int64_t lda, const T* x,
          int64_t x_step, T beta, T* y, int64_t y_step);

}  // namespace taeda::cpu
