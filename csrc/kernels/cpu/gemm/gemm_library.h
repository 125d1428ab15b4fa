// The seam to OpenBLAS: no other file of the products knows of it. It computes the products of
// complex numbers that are not small.
#pragma once

#include "kernels/cpu/gemm/gemm.h"

namespace taeda::cpu {

// As gemm and gemv of complex numbers, m, n and k > 0. Cut into tasks by their sizes alone.
template <class T>
void library_gemm(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
                  T* c, int64_t ldc);

}  // namespace taeda::cpu
