// Sums of few rows.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// y[c] = x[c] + x[stride + c] + ..., of n rows, in this order, for c < columns.
template <class T>
using RowSums = void (*)(const T* x, int64_t n, int64_t stride, int64_t columns, T* y);

TAEDA_TABLES(ForFloats<RowSums>, row_sums)

}  // namespace taeda::cpu::simd
