// Eigenvalues and eigenvectors of one real matrix that fits a near cache. Small matrices of a batch
// are diagonalized together (batched.h), large ones by LAPACK.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Of any square matrix.
template <class T> struct EigLoops {
  // Elements of work space.
  static constexpr int64_t space(int64_t n) { return (n + 31) / 16 * 16 * (3 * n + 40); }

  // The eigenvalues of a (n x n) as pairs of real and imaginary parts, in LAPACK's order, and
  // unless it is null the eigenvectors, of length 1, in the same way. Returns false, with nothing
  // written, for a matrix with numbers whose squares overflow or vanish, with a row or column that
  // is zero off the diagonal, or where the iteration does not converge.
  bool (*eig)(int64_t n, const T* a, T* values, T* vectors, T* work);
};

// Of a symmetric one.
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

TAEDA_TABLES(ForFloats<EigLoops>, eig_kernels)
TAEDA_TABLES(ForFloats<EighLoops>, eigh_kernels)

}  // namespace taeda::cpu::simd
