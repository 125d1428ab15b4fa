// Eigenvalues and eigenvectors of one real matrix of moderate size, whose columns stay in a near
// cache.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct EigLoops {
  // Elements of work space.
  static constexpr int64_t space(int64_t n) { return (n + 31) / 16 * 16 * (3 * n + 40); }

  // The eigenvalues of a (n x n), whose largest number is `most`, as pairs of real and imaginary
  // parts, in LAPACK's order, and unless it is null the eigenvectors, of length 1, in the same way.
  // Returns false, with nothing written, where it is not known how to.
  bool (*eig)(int64_t n, const T* a, T most, T* values, T* vectors, T* work);
};

struct EigKernels {
  EigLoops<float> f32;
  EigLoops<double> f64;
};

namespace v2 {
extern const EigKernels eig_kernels;
}
namespace v3 {
extern const EigKernels eig_kernels;
}
namespace v4 {
extern const EigKernels eig_kernels;
}
namespace base {
extern const EigKernels eig_kernels;
}

}  // namespace taeda::cpu::simd
