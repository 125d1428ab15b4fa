// Eigenvalues and eigenvectors of one real matrix that fits a near cache.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct EigLoops {
  // Elements of work space.
  static constexpr int64_t space(int64_t n) { return (n + 31) / 16 * 16 * (3 * n + 40); }

  // The eigenvalues of a (n x n) as pairs of real and imaginary parts, in LAPACK's order, and
  // unless it is null the eigenvectors, of length 1, in the same way. Returns false, with nothing
  // written, for a matrix with numbers whose squares overflow or vanish, with a row or column that
  // is zero off the diagonal, or where the iteration does not converge.
  bool (*eig)(int64_t n, const T* a, T* values, T* vectors, T* work);
};

struct EigKernels {
  EigLoops<float> f32;
  EigLoops<double> f64;
};

TAEDA_TABLES(EigKernels, eig_kernels)

}  // namespace taeda::cpu::simd
