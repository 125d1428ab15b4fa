// Few inner products of long vectors: c (m x n) = op(a) (m x k) op(b) (k x n), m and n at most
// kLongSide. What takes the time is to read both sides, once each. Real or complex; a complex
// number is two of T, the real part first, and steps count numbers.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kLongSide = 8;

template <class T> struct LongProduct {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_step;  // from one row to the next, and from one term to the next
  const T* b;
  int64_t b_col, b_step;  // the same of columns
  bool conjugate_a = false, conjugate_b = false;
};

struct LongGemmKernels {
  // c's rows lie n apart. Either both steps are 1, or b_col is 1 and n <= b_step.
  template <class T> using Products = void (*)(const LongProduct<T>& product, T* c);
  Products<float> f32, c32;
  Products<double> f64, c64;
};

namespace v2 {
extern const LongGemmKernels long_gemm_kernels;
}
namespace v3 {
extern const LongGemmKernels long_gemm_kernels;
}
namespace v4 {
extern const LongGemmKernels long_gemm_kernels;
}
namespace base {
extern const LongGemmKernels long_gemm_kernels;
}

}  // namespace taeda::cpu::simd
