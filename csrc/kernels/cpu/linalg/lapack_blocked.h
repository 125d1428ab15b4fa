// Factors of one matrix, which lies by columns, cut into halves again and again: what is left for
// LAPACK is narrow, and the rest are matrix products, which are ours and use all threads. T: float,
// double, std::complex<float> or std::complex<double>.
#pragma once

#include "kernels/cpu/linalg/lapack.h"

namespace taeda::cpu::lapack {

// Solves op(t) x = b for b (n x many), or x op(t) = b for b (many x n) unless how.left. t: n x n.
template <class T>
void solve_blocks(int64_t n, int64_t many, Triangle how, const T* t, int64_t ldt, T* b,
                  int64_t ldb);

// a (m x n) = P L U; returns 0, or which pivot was the first to be zero, counted from 1.
template <class T> int32_t lu_blocks(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots);
// Exchanges rows of a (n columns) as the k pivots say, in their order or from the last one on.
template <class T>
void swap_rows(int64_t n, T* a, int64_t ld, const int32_t* pivots, int64_t k, bool forward);

// a = L L^H or U^H U; returns 0, or which leading minor is not positive. Part of the other triangle
// is lost.
template <class T> int32_t cholesky_blocks(int64_t n, bool upper, T* a, int64_t ld);

}  // namespace taeda::cpu::lapack
