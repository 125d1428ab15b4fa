// Products of matrices with at most some two dozen rows and columns, where to pack both sides and
// to choose among kernels, as BLAS does, costs more than the arithmetic.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kSmallSide = 24;

// op(X)[i, j] = data[i * row + j * col].
template <class T> struct Strided {
  const T* data;
  int64_t row, col;
};

struct SmallGemmKernels {
  // c (m x n, rows `ldc` apart) = a (m x k) * b (k x n), plus c where `add`; n, k <= kSmallSide.
  template <class T>
  using Product = void (*)(int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, bool add,
                           T* c, int64_t ldc);
  Product<float> f32;
  Product<double> f64;
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
