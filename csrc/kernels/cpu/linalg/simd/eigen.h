// Eigenvalues and eigenvectors of one real matrix that fits a near cache. Small symmetric matrices
// of a batch are diagonalized together (batched.h), large ones by LAPACK.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Of any square matrix, whose Hessenberg form h (n x n, zero below its subdiagonal) is made a
// triangle with blocks of one and two rows on the diagonal, but for those that do not converge
// soon; q becomes q times the product of the reflections. Unless there is a q, only the blocks are
// right. Columns lie ld numbers apart, a multiple of 16, with zeros below row n. The largest number
// is about 1.
template <class T> struct SchurLoops {
  void (*to_blocks)(int64_t n, int64_t ld, T* h, T* q);
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

TAEDA_TABLES(ForFloats<SchurLoops>, schur_kernels)
TAEDA_TABLES(ForFloats<EighLoops>, eigh_kernels)

}  // namespace taeda::cpu::simd
