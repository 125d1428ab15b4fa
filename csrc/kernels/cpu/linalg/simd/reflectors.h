// QR of one matrix that fits a near cache, or of a panel of a larger one (lapack_qr.cpp), reflector
// by reflector. Small matrices of a batch are factored together (batched.h).
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct ReflectorLoops {
  // Elements of work space for a matrix of that size.
  static constexpr int64_t space(int64_t rows, int64_t cols) {
    return (rows + 15) / 16 * 16 * (cols + 9);
  }

  // R in the upper triangle of a (m x n, `lda` apart), reflectors below it, in LAPACK's form; tau:
  // min(m, n).
  void (*qr)(int64_t m, int64_t n, T* a, int64_t lda, T* tau, T* work);
  // The first n columns of the product of the k reflectors in a (m x n), in their place.
  void (*q)(int64_t m, int64_t n, int64_t k, T* a, const T* tau, T* work);
  // c (m x n, `ldc` apart) = Q c, or Q' c where `transposed`, Q the product of the k reflectors in
  // a
  // (`lda` apart).
  void (*multiply)(int64_t m, int64_t n, bool transposed, int64_t k, const T* a, int64_t lda,
                   const T* tau, T* c, int64_t ldc, T* work);
  // The largest |x[i]|; NaN where an element is NaN.
  T (*largest_size)(int64_t n, const T* x);
};

TAEDA_TABLES(ForFloats<ReflectorLoops>, reflector_kernels)

}  // namespace taeda::cpu::simd
