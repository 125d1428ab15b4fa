// Products of matrices with at most some two dozen rows and columns, where to pack both sides and
// to choose among kernels, as BLAS does, costs more than the arithmetic.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kSmallSide = 24;

// op(X)[i, j] = data[i * row + j * col], one of them 1; the next matrix of a batch lies `next`
// elements on.
template <class T> struct Strided {
  const T* data;
  int64_t row, col, next;
};

struct SmallGemmKernels {
  // c (m x n, rows `ldc` apart) = a (m x k) * b (k x n), plus c where `add`; n, k <= kSmallSide.
  // `count` such products, the next result `c_step` elements on.
  template <class T>
  using Products = void (*)(int64_t count, int64_t m, int64_t n, int64_t k, const Strided<T>& a,
                            const Strided<T>& b, bool add, T* c, int64_t ldc, int64_t c_step);
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
