// Products of complex numbers as products of real ones.
#pragma once

#include "kernels/cpu/gemm/gemm_packed.h"

namespace taeda::cpu {

// T: std::complex<float> or std::complex<double>; k > 0.
template <class T> void real_gemm(const Product<T>& x);
// Whether the transposed product, c' = op(b)' op(a)', is the one to compute: few rows or columns
// are copied then, and many read where they are.
template <class T> bool is_transposed(const Product<T>& x);
template <class T> void transposed_gemm(const Product<T>& x);
template <class T> GemmWork real_work(const Product<T>& x);

}  // namespace taeda::cpu
