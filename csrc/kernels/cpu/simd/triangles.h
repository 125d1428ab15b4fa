// Triangles of moderate size, whose columns stay in the first cache.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct TriangleLoops {
  // Elements of work space for `inverse`.
  static constexpr int64_t space(int64_t n) { return (n + 15) / 16 * 16 * (2 * n + 10); }

  // w (n x n, `ldw` apart, zeros above the diagonal) = the inverse of the lower triangle l, or of
  // l' where l is an upper one; both may be in the same place.
  void (*inverse)(int64_t n, bool upper, const T* l, int64_t ldl, T* w, int64_t ldw, T* work);
};

struct TriangleKernels {
  TriangleLoops<float> f32;
  TriangleLoops<double> f64;
};

namespace v2 {
extern const TriangleKernels triangle_kernels;
}
namespace v3 {
extern const TriangleKernels triangle_kernels;
}
namespace v4 {
extern const TriangleKernels triangle_kernels;
}
namespace base {
extern const TriangleKernels triangle_kernels;
}

}  // namespace taeda::cpu::simd
