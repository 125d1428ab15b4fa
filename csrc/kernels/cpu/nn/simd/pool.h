// Inner loops of pooling over a row of outputs.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Elements that lie together; none of the sizes is 0.
struct PoolWindow {
  int64_t depth, depth_step, height, height_step, width;
};

template <class T> struct PoolLoops {
  // For i < n: y[i] is the largest of x[first + taps[t] + i * step], t < many, and at[i] is where
  // it lies in x: the first one, or the last NaN, of which there is none unless `nan`. many > 0.
  void (*maxima)(const T* x, int32_t first, const int32_t* taps, int64_t many, int64_t step,
                 int64_t n, bool nan, T* y, int64_t* at);
  // For i < n: sum[i] += x[i * step].
  void (*add)(const T* x, int64_t step, int64_t n, T* sum);

  // Of one window: its largest element, and where the first such one lies after the window's own
  // first. False, and nothing is stored, where there is a NaN. Places are below 2^31.
  bool (*maximum)(const T* x, const PoolWindow& window, T* y, int64_t* at);
  T (*sum)(const T* x, const PoolWindow& window);
  void (*add_to_all)(T* x, const PoolWindow& window, T share);  // x += share
};

struct PoolKernels {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
};

TAEDA_TABLES(PoolKernels, pool_kernels)

}  // namespace taeda::cpu::simd
