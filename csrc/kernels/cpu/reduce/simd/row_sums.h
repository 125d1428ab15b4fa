// Sums of few rows.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// y[c] = x[c] + x[stride + c] + ..., of n rows, in this order, for c < columns.
struct RowSums {
  void (*f32)(const float* x, int64_t n, int64_t stride, int64_t columns, float* y);
  void (*f64)(const double* x, int64_t n, int64_t stride, int64_t columns, double* y);
};

TAEDA_TABLES(RowSums, row_sums)

}  // namespace taeda::cpu::simd
