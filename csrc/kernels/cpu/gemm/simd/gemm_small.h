// Products of matrices with at most some two dozen rows and columns, where to pack both sides and
// to choose among kernels, as BLAS does, costs more than the arithmetic.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kSmallSide = 24;
constexpr int64_t kSmallTurned = 2048;  // elements of a right side that is transposed first

// op(X)[i, j] = data[i * row + j * col], one of them 1; the next matrix of a batch lies `next`
// elements on.
template <class T> struct Strided {
  const T* data;
  int64_t row, col, next;
};

// c (m x n, rows `ldc` apart) = a (m x k) * b (k x n), plus the n elements of `start` in each row,
// if it is given, or plus c where `add`.
template <class T> struct SmallProduct {
  int64_t m, n, k;
  Strided<T> a, b;
  T* c;
  int64_t ldc, c_next;
  const T* start = nullptr;
  bool add = false;
};

struct SmallGemmKernels {
  // `count` such products.
  template <class T> using Products = void (*)(int64_t count, const SmallProduct<T>& product);
  Products<float> f32;
  Products<double> f64;
};

namespace v2 {
extern const SmallGemmKernels small_gemm_kernels;
}
namespace v3 {
extern const SmallGemmKernels small_gemm_kernels;
}
namespace v4 {
extern const SmallGemmKernels small_gemm_kernels;
}
namespace base {
extern const SmallGemmKernels small_gemm_kernels;
}

}  // namespace taeda::cpu::simd
