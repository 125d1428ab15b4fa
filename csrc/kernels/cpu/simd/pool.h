// Inner loops of pooling: one tap of the window for a whole row of outputs.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

template <class T> struct PoolLoops {
  // For i < n: where x[i * step] is larger than best[i], or NaN, it becomes best[i], and
  // first + i * step becomes at[i].
  void (*keep_larger)(const T* x, int64_t step, int64_t n, int32_t first, T* best, int32_t* at);
  // For i < n: sum[i] += x[i * step].
  void (*add)(const T* x, int64_t step, int64_t n, T* sum);
};

struct PoolKernels {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
};

namespace v2 {
extern const PoolKernels pool_kernels;
}
namespace v3 {
extern const PoolKernels pool_kernels;
}
namespace v4 {
extern const PoolKernels pool_kernels;
}
namespace base {
extern const PoolKernels pool_kernels;
}

}  // namespace taeda::cpu::simd
