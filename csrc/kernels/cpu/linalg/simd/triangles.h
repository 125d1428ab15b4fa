// Triangles, and LU factors, of moderate size, whose columns stay in the first cache.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct TriangleLoops {
  // Elements of work space.
  static constexpr int64_t space(int64_t rows, int64_t cols) {
    return (rows + 15) / 16 * 16 * (2 * cols + 10);
  }

  // w (n x n, `ldw` apart, zeros above the diagonal) = the inverse of the lower triangle l, or of
  // l' where l is an upper one; both may be in the same place.
  void (*inverse)(int64_t n, bool upper, const T* l, int64_t ldl, T* w, int64_t ldw, T* work);
  // a (m x n, `ld` apart) = P L U, pivots counted from 1. Returns 0, or where the first pivot of 0
  // is, counted so too.
  int32_t (*lu)(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots, T* work);
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
