// What a symmetric matrix's tridiagonal form is made of. Vectors and the columns of matrices are
// aligned to kBlock elements and filled up to a multiple of it with zeros.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct SymmetricLoops {
  static constexpr int64_t kBlock = 16;

  // y += B x + B' x, where B has the columns begin <= c < end of the strictly lower triangle a and
  // is zero elsewhere. Of each column the elements above the diagonal are zeros, from the last row
  // on that kBlock divides. begin and end are multiples of kBlock.
  void (*multiply)(int64_t n, int64_t begin, int64_t end, const T* a, int64_t ld, const T* x, T* y);
  // out[c] = the inner product of column c < many and x, in the rows from <= r < n.
  void (*dots)(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* x, T* out);
  // y += a factors, in the same rows.
  void (*add)(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* factors,
              T* y);
  // out = x y, element by element, and y = factor (y - shift x), in the same rows.
  void (*times)(int64_t from, int64_t n, const T* x, const T* y, T* out);
  void (*combine)(int64_t from, int64_t n, T factor, T shift, const T* x, T* y);
  // Makes v, of which the elements from `first` < n on are given, the v of the reflector
  // 1 - tau v v' that takes them to one number, `beside`, and zeros; returns its tau. v[first]
  // becomes 1. From the last element before `first` that kBlock divides to there, v is zero.
  T (*reflect)(int64_t first, int64_t n, T* v, T& beside);
};

struct SymmetricKernels {
  SymmetricLoops<float> f32;
  SymmetricLoops<double> f64;
};

namespace v2 {
extern const SymmetricKernels symmetric_kernels;
}
namespace v3 {
extern const SymmetricKernels symmetric_kernels;
}
namespace v4 {
extern const SymmetricKernels symmetric_kernels;
}
namespace base {
extern const SymmetricKernels symmetric_kernels;
}

}  // namespace taeda::cpu::simd
