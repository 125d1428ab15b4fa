// Inner loops of pooling.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Elements that lie together; none of the sizes is 0.
struct PoolWindow {
  int64_t depth, depth_step, height, height_step, width;
};

template <class T> struct PoolLoops {
  // A row of outputs: for i < n, y[i] is the largest of x[first + taps[t] + i * step], t < count,
  // and at[i] its offset in x: of the first one, or of the last NaN. count > 0.
  void (*maxima)(const T* x, int32_t first, const int32_t* taps, int64_t count, int64_t step,
                 int64_t n, T* y, int64_t* at);
  // For i < n: sum[i] += x[i * step].
  void (*add)(const T* x, int64_t step, int64_t n, T* sum);

  // One window: its largest element, and the offset of the first such one from the window's first.
  // False, and nothing is stored, where there is a NaN. Offsets are below 2^31.
  bool (*maximum)(const T* x, const PoolWindow& window, T* y, int64_t* at);
  T (*sum)(const T* x, const PoolWindow& window);
  // The sum of a whole plane of n elements, whose blocks are added up in double.
  double (*plane_sum)(const T* x, int64_t n);
};

struct PoolKernels {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
};

TAEDA_TABLES_UP_TO_V3(PoolKernels, pool_kernels)

}  // namespace taeda::cpu::simd
