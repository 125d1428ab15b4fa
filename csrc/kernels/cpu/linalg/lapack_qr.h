// Reflectors 1 - tau v v' and QR factors made of them, in LAPACK's form. T: float or double.
#pragma once

#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/linalg/simd/reflectors.h"

namespace taeda::cpu::lapack {

template <class T> const simd::ReflectorLoops<T>& reflector_loops();

// R in the upper triangle of a (m x n), reflectors below it; tau: min(m, n).
template <class T> void factor_qr(int64_t m, int64_t n, T* a, T* tau);
// The first n columns of the product of the k reflectors in a (m x n), which they overwrite.
template <class T> void make_q(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
// c (m x n, `ldc` apart) = Q c, or Q' c where `transposed`, Q the product of the k reflectors in a
// (`lda` apart).
template <class T>
void multiply_reflectors(int64_t m, int64_t n, bool transposed, int64_t k, const T* a, int64_t lda,
                         const T* tau, T* c, int64_t ldc);

}  // namespace taeda::cpu::lapack
