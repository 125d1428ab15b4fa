// Sums of few rows.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// y[c] = x[c] + x[stride + c] + ..., of n rows, in this order, for c < columns.
struct RowSums {
  void (*f32)(const float* x, int64_t n, int64_t stride, int64_t columns, float* y);
  void (*f64)(const double* x, int64_t n, int64_t stride, int64_t columns, double* y);
};

namespace v2 {
extern const RowSums row_sums;
}
namespace v3 {
extern const RowSums row_sums;
}
namespace v4 {
extern const RowSums row_sums;
}
namespace base {
extern const RowSums row_sums;
}

}  // namespace taeda::cpu::simd
