// Matrix products on plain memory, row-major.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "kernels/kernels.h"

namespace taeda {

enum class Trans : uint8_t { No, Yes, Conj };  // Conj: the conjugate transpose

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

// T: float, double, std::complex of either, Half, BFloat16.
template <class T> struct GemmKernels {
  using S = GemmOut<T>;
  // c (m x n, rows `ldc` apart) = alpha * op(a) (m x k) * op(b) (k x n) + beta * c; c is not read
  // where beta is 0.
  KernelFn<void(int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a, MatrixRef<T> b, S beta,
                S* c, int64_t ldc)>
      gemm;
  // The same over a batch: matrix i begins i * step elements after the first (a step of 0 repeats
  // it).
  KernelFn<void(int64_t batch, int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a,
                int64_t a_step, MatrixRef<T> b, int64_t b_step, S beta, S* c, int64_t ldc,
                int64_t c_step)>
      batched;
  // c = op(a) op(b), and `start` (n elements) added to every row. Not for half precision.
  KernelFn<void(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
                T* c, int64_t ldc)>
      onto;
  // The same as `batched` with c of T, rounded once, and `start` (n elements, or null) added to
  // every row. For half precision; where a device has none, results are floats that are rounded
  // afterwards.
  KernelFn<void(int64_t batch, int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a,
                int64_t a_step, MatrixRef<T> b, int64_t b_step, S beta, T* c, int64_t ldc,
                int64_t c_step, const T* start)>
      rounded;

  static const GemmKernels cpu;
};

// c = op(a) op(b) of a batch of integer matrices, whose arithmetic wraps around.
template <class T> struct IntegerGemmKernels {
  KernelFn<void(int64_t batch, int64_t m, int64_t n, int64_t k, MatrixRef<T> a, int64_t a_step,
                MatrixRef<T> b, int64_t b_step, T* c, int64_t ldc, int64_t c_step)>
      batched;

  static const IntegerGemmKernels cpu;
};

}  // namespace taeda
