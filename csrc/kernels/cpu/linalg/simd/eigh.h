// Eigenvalues and eigenvectors of one symmetric matrix that fits a near cache. Small matrices of a
// batch are diagonalized together (batched.h), large ones by LAPACK (lapack_eigh.cpp).
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct EighLoops {
  // Elements of work space that all functions share.
  static constexpr int64_t space(int64_t n) { return ((n + 15) / 16 * 16) * (2 * n + 20) + n; }

  // The tridiagonal form of the symmetric matrix of which one triangle is read: its diagonal d, and
  // e next to it (n elements, the last one 0). Returns false where squares of the matrix's numbers
  // overflow or vanish.
  bool (*tridiagonal)(int64_t n, bool upper, const T* a, T* d, T* e, T* work);
  // From there the eigenvalues, ascending, into d, and eigenvectors into a. Returns false, with a
  // as it was, where the iteration does not converge.
  bool (*vectors)(int64_t n, T* d, T* e, T* a, T* work);
};

struct EighKernels {
  EighLoops<float> f32;
  EighLoops<double> f64;
};

TAEDA_TABLES(EighKernels, eigh_kernels)

}  // namespace taeda::cpu::simd
