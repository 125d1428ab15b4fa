// Running sums of one line.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

struct ScanKernels {
  // y[i] = x[0] + ... + x[i], in double.
  void (*sums)(const float* x, int64_t n, float* y);
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
