// Inner loops of products with a matrix in compressed rows.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct SparseLoops {
  // y (width) = sum over k < count of values[k] * x[column[k]], rows of x (rows x width). False,
  // with y undefined, if a column is not in [0, rows).
  bool (*combine)(int64_t count, const int64_t* column, const T* values, const T* x, int64_t rows,
                  int64_t width, T* y);
  // out[k] = the inner product of a and row column[k] of x (rows x width).
  bool (*inner)(int64_t count, const int64_t* column, const T* a, const T* x, int64_t rows,
                int64_t width, T* out);
};

struct SparseKernels {
  SparseLoops<float> f32;
  SparseLoops<double> f64;
};

TAEDA_TABLES(SparseKernels, sparse_kernels)

}  // namespace taeda::cpu::simd
