// Products whose sums are short: what takes the time is to write the results, so both sides are
// read where they lie. Real or complex, of any number of rows and columns.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm/simd/gemm_small.h"

namespace taeda::cpu::simd {

// A complex number is two of T, the real part first; steps count numbers. op(b)'s rows lie side by
// side (b.col is 1).
template <class T> struct ThinProduct {
  int64_t m, n, k;
  Strided<T> a, b;
  bool conjugate_a = false, conjugate_b = false;
  bool add = false;  // to what c holds
};

struct ThinGemmKernels {
  // c (m x n, rows `ldc` apart) = op(a) op(b); `count` of them, the next result `c_step` on.
  template <class T>
  using Products = void (*)(int64_t count, const ThinProduct<T>& product, T* c, int64_t ldc,
                            int64_t c_step);
  Products<float> f32, c32;
  Products<double> f64, c64;
};

namespace v2 {
extern const ThinGemmKernels thin_gemm_kernels;
}
namespace v3 {
extern const ThinGemmKernels thin_gemm_kernels;
}
namespace v4 {
extern const ThinGemmKernels thin_gemm_kernels;
}
namespace base {
extern const ThinGemmKernels thin_gemm_kernels;
}

}  // namespace taeda::cpu::simd
