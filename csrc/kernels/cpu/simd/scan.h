// Running sums of one line.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

struct ScanKernels {
  // y[i] = x[0] + ... + x[i], in double.
  void (*sums)(const float* x, int64_t n, float* y);
  // The same on top of `before`; returns the sum without it, the same bits that `sum` gives.
  double (*sums_from)(const float* x, int64_t n, double before, float* y);
  double (*sum)(const float* x, int64_t n);
};

namespace v2 {
extern const ScanKernels scan_kernels;
}
namespace v3 {
extern const ScanKernels scan_kernels;
}
namespace v4 {
extern const ScanKernels scan_kernels;
}
namespace base {
extern const ScanKernels scan_kernels;
}

}  // namespace taeda::cpu::simd
