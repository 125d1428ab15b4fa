// Products of few rows with a large matrix of float16 or bfloat16 numbers, which is read once,
// where it lies, and widened in registers.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kFewRows = 8;      // at most
constexpr int64_t kFewPadding = 16;  // rows of x and of sums have room for this many more numbers

struct FewHalvesLoops {
  // y[i * y_row + j] = sum over p < k of x[i * x_row + p] w[j * w_row + p], i < m, j < n. What
  // follows a row of x is 0.
  void (*dots)(int64_t m, int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
               int64_t x_row, float* y, int64_t y_row);
  // y[i * y_row + j] = sum over p < k of x[i * x_row + p] w[p * w_row + j]; what follows a row of y
  // is overwritten.
  void (*sums)(int64_t m, int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
               int64_t x_row, float* y, int64_t y_row);
};

struct FewHalvesKernels {
  FewHalvesLoops f16, bf16;
};

namespace v2 {
extern const FewHalvesKernels few_halves_kernels;
}
namespace v3 {
extern const FewHalvesKernels few_halves_kernels;
}
namespace v4 {
extern const FewHalvesKernels few_halves_kernels;
}
namespace base {
extern const FewHalvesKernels few_halves_kernels;
}

}  // namespace taeda::cpu::simd
