// Reflectors 1 - tau v v', and QR factors made of them: many by matrix products on all threads, few
// one by one. Matrices lie by columns, in LAPACK's form. T: float or double.
#pragma once

#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/simd/symmetric.h"

namespace taeda::cpu::lapack {

template <class T> const simd::SymmetricLoops<T>& symmetric_loops();

// R in the upper triangle of a (m x n), reflectors below it; tau: min(m, n).
template <class T> void factor_qr(int64_t m, int64_t n, T* a, T* tau);
// The same of a with its columns exchanged such that R's diagonal descends: column i of it is
// column order[i] of a. For matrices that are near only.
template <class T> void factor_qr_pivots(int64_t m, int64_t n, T* a, T* tau, int32_t* order);
template <class T> bool pivots_are_near(int64_t m, int64_t n);
// The first n columns of the product of the k reflectors in a (m x n), in their place.
template <class T> void make_q(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
// c (m x n) = op(Q) c or c op(Q), Q the product of k reflectors, each as long as Q is high.
template <class T>
void multiply_reflectors(int64_t m, int64_t n, bool left, bool turned, int64_t k, const T* a,
                         const T* tau, T* c);

}  // namespace taeda::cpu::lapack
