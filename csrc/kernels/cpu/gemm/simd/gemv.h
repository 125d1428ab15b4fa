// Products of a matrix and a vector.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// y = alpha op(a) x + beta y, with `rows` times `cols` elements in a, rows `stride` apart. Where
// beta is 0, y is not read.
template <class T> struct VectorProduct {
  int64_t rows, cols;
  const T* a;
  int64_t stride;
  const T* x;  // contiguous
  T alpha, beta;
  T* y;
  int64_t y_step;
};

struct GemvKernels {
  void (*f32)(const VectorProduct<float>&);  // op(a) = a
  void (*f64)(const VectorProduct<double>&);
  void (*turned_f32)(const VectorProduct<float>&);  // op(a) = a'
  void (*turned_f64)(const VectorProduct<double>&);
};

namespace v2 {
extern const GemvKernels gemv_kernels;
}
namespace v3 {
extern const GemvKernels gemv_kernels;
}
namespace v4 {
extern const GemvKernels gemv_kernels;
}
namespace base {
extern const GemvKernels gemv_kernels;
}

}  // namespace taeda::cpu::simd
