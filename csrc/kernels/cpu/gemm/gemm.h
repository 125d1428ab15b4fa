// Matrix products on plain memory, row-major.
//
// How a product is computed is chosen by its sizes and layout (gemm.cpp), and work is cut into
// tasks by sizes alone: the same product has the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/gemm/simd/gemm_kernels.h"

namespace taeda::cpu {

enum class Trans : uint8_t {
  No,
  Yes,
  Conj
};  // Conj: conjugate transpose (for real types the transpose)

// A matrix in memory, its rows `stride` elements apart; op(X) is X, its transpose or its conjugate
// transpose.
template <class T> struct MatrixRef {
  const T* data;
  int64_t stride;
  Trans trans = Trans::No;

  // The part of op(X) that begins at (row, col).
  MatrixRef from(int64_t row, int64_t col) const {
    return {data + (trans == Trans::No ? row * stride + col : col * stride + row), stride, trans};
  }
  MatrixRef transposed() const {
    return {data, stride, trans == Trans::No ? Trans::Yes : Trans::No};
  }
};

// What results of T are: T itself, but float of half precision.
template <class T>
using GemmOut =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// c (m x n, rows `ldc` apart) = alpha * op(a) (m x k) * op(b) (k x n) + beta * c; c is not read
// where beta is 0. S: float, double, std::complex<float>, std::complex<double>; T: S, or Half or
// BFloat16 of float.
template <class S, class T = S>
void gemm(int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a, MatrixRef<T> b, S beta, S* c,
          int64_t ldc);

// c = op(a) op(b), and `start` (n elements) added to every row.
template <class T>
void gemm_onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
               T* c, int64_t ldc);

// c = op(a) op(b), and start[i] (m elements) added to every element of row i. Of real numbers.
template <class T>
void gemm_onto_rows(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
                    T* c, int64_t ldc);

// gemm over a batch: matrix i begins i * step elements after the first (a step of 0 repeats it).
template <class S, class T = S>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a,
                  int64_t a_step, MatrixRef<T> b, int64_t b_step, S beta, S* c, int64_t ldc,
                  int64_t c_step);

// Of integers, whose arithmetic wraps around, with alpha = 1 and beta = 0.
template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, T* c,
                  int64_t ldc);

// ---- for benchmarks/tune.py and tests ----

// A way to compute a float32 product of contiguous matrices, its estimated nanoseconds, and the
// amounts of work (GemmWork) that the estimate weighs by the rates of tuning.h.
struct GemmCandidate {
  const char* name;
  double cost;
  double work[8];
};
std::vector<GemmCandidate> gemm_candidates(int64_t m, int64_t n, int64_t k, bool a_transposed,
                                           bool b_transposed);

// Makes every product that this algorithm can compute use it; null: back to the estimates. False if
// there is no such name.
bool force_gemm_algorithm(const char* name);

}  // namespace taeda::cpu
