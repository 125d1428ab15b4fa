// The inner loop that all our own products are made of. It reads one operand where it lies, row by
// row at given offsets, so that convolution needs no matrix of windows.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// Outputs that lie next to each other in a run of tiles, in the result, and in what is read.
struct Stretch {
  int64_t from, to, laid, count;
};

template <class T> struct GemmLoops {
  int64_t rows, cols;  // the most rows, and the exact number of columns, of one product

  // c[r, j] = (start ? start[r] : c[r, j]) + sum over p < k of a[p * m + r] * b[offset[p] + j], for
  // r < m <= rows and j < cols.
  void (*product)(int64_t k, int64_t m, const T* a, const T* b, const int64_t* offset,
                  const T* start, T* c, int64_t ldc);
  // Copies some stretches from each of `rows` offsets: to[row * ld + from + i] = laid[offset[row] +
  // laid + i]. Up to half of `cols` more elements are read and written after each; what comes later
  // overwrites them.
  void (*gather)(const Stretch* stretches, int64_t many, const int64_t* offset, int64_t rows,
                 const T* laid, int64_t ld, T* to);
  // to[i] = from[i * step], i < n.
  void (*every)(const T* from, int64_t step, int64_t n, T* to);
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
