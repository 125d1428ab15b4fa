// Factorizations of small matrices, batch-interleaved: lane l of a vector computes with matrix l,
// so that the latency of roots and quotients is paid once for all of them.
//
// Matrices are stored by columns, one after the other. Functions that return false have written
// nothing: a matrix holds numbers that are not finite, or whose products of squares overflow or
// vanish.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kSmallMatrix = 16;  // rows and columns at most

template <class T> struct BatchedLoops {
  int64_t lanes;  // the most matrices in one call

  // The k = min(m, n) singular values of each matrix, descending, and unless they are null the
  // first k left (m x k) and right vectors (k x n).
  bool (*svd)(int64_t count, int64_t m, int64_t n, const T* a, T* values, T* u, T* vh);
  // The eigenvalues of symmetric matrices, of which one triangle is read, ascending, and unless it
  // is null the eigenvectors, which may overwrite a.
  bool (*eigh)(int64_t count, int64_t n, bool upper, const T* a, T* values, T* vectors);
  // a = P L U, whatever it holds; pivots: min(m, n) for each matrix, counted from 1. info: 0, or
  // which pivot is the first to be 0.
  void (*lu)(int64_t count, int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* info);
  // b (n x cols) = the solution of a x = b, or of a' x = b where `transposed`, from these factors;
  // lu_step, pivot_step: from one matrix's to the next one's.
  void (*lu_solve)(int64_t count, int64_t n, int64_t cols, bool transposed, const T* lu,
                   int64_t lu_step, const int32_t* pivots, int64_t pivot_step, T* b);
  // One triangle of a = L L' or U' U. info: 0, or which leading minor is the first that is not
  // positive.
  void (*cholesky)(int64_t count, int64_t n, bool upper, T* a, int32_t* info);
  // R in the upper triangle, reflectors below it; tau: min(m, n) for each matrix.
  bool (*qr)(int64_t count, int64_t m, int64_t n, T* a, T* tau);
  // The first n columns of the product of the k reflectors in a's first columns.
  void (*q)(int64_t count, int64_t m, int64_t n, int64_t k, T* a, const T* tau);
};

TAEDA_TABLES(ForFloats<BatchedLoops>, batched_kernels)

}  // namespace taeda::cpu::simd
