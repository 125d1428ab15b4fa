// The inner loop that all our own products are made of. It reads one operand where it lies, row by
// row at given offsets, so that convolution needs no matrix of windows.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct GemmLoops {
  int64_t rows, cols;  // the most rows, and the exact number of columns, of one product

  // c[r, j] += sum over p < k of a[p * m + r] * b[offset[p] + j], for r < m <= rows and j < cols.
  void (*product)(int64_t k, int64_t m, const T* a, const T* b, const int64_t* offset, T* c,
                  int64_t ldc);
};

struct GemmKernels {
  GemmLoops<float> f32;
  GemmLoops<double> f64;
};

namespace v2 {
extern const GemmKernels gemm_kernels;
}
namespace v3 {
extern const GemmKernels gemm_kernels;
}
namespace v4 {
extern const GemmKernels gemm_kernels;
}
namespace base {
extern const GemmKernels gemm_kernels;
}

}  // namespace taeda::cpu::simd
