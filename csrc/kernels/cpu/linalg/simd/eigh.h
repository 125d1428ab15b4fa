// Eigenvectors of one symmetric matrix of moderate size, whose columns stay in a near cache:
// several at once are worth it for smaller ones (matrices.h), divide and conquer for larger ones.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct EighLoops {
  // Elements of work space that all functions share.
  static constexpr int64_t space(int64_t n) { return ((n + 15) / 16 * 16) * (2 * n + 20) + n; }

  // Q' a Q = the tridiagonal matrix with the diagonal d and e beside it (n elements, the last one
  // 0), for the symmetric matrix of which one triangle is read. Its numbers can be squared.
  void (*tridiagonal)(int64_t n, bool upper, const T* a, T* d, T* e, T* work);
  // From there the eigenvalues, ascending, into d, and eigenvectors into a. Returns false, with a
  // as it was, where too many rotations have not been enough.
  bool (*vectors)(int64_t n, T* d, T* e, T* a, T* work);
  // The same of the tridiagonal matrix itself, with any signs; the columns of a are lda apart.
  bool (*of_tridiagonal)(int64_t n, T* d, T* e, T* a, int64_t lda, T* work);
};

struct EighKernels {
  EighLoops<float> f32;
  EighLoops<double> f64;
};

namespace v2 {
extern const EighKernels eigh_kernels;
}
namespace v3 {
extern const EighKernels eigh_kernels;
}
namespace v4 {
extern const EighKernels eigh_kernels;
}
namespace base {
extern const EighKernels eigh_kernels;
}

}  // namespace taeda::cpu::simd
