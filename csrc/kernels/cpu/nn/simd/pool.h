// Inner loops of pooling.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Elements along each dimension, none of them 0, and the distances between them.
struct PoolWindow {
  int64_t depth, depth_step, height, height_step, width, width_step;
};

// What each of a line of windows reads, and how that is counted.
struct PoolTaps {
  const int32_t *offsets, *indices;
  int64_t count, step, index_step;
  int32_t start;
};

template <class T> struct PoolLoops {
  // A line of outputs: for i < n, y[i] is the largest of x[taps.offsets[t] + i * taps.step], and
  // at[i] is taps.start + taps.indices[t] + i * taps.index_step: of the first one, or of the last
  // NaN. n * sizeof(T) >= 16.
  void (*maxima)(const T* x, const PoolTaps& taps, int64_t n, T* y, int64_t* at);
  // One window: its largest element and the offset of that in x: of the first one, or of the last
  // NaN. Offsets are below 2^31.
  void (*maximum)(const T* x, const PoolWindow& window, T* y, int64_t* at);
  // For i < n: sum[i] += x[i * step], and sum[i * step] += x[i].
  void (*add)(const T* x, int64_t step, int64_t n, T* sum);
  void (*spread)(const T* x, int64_t step, int64_t n, T* sum);
  // y[i] = x[i] / (counts[i] * factor), for i < n.
  void (*divide)(const T* x, const T* counts, T factor, int64_t n, T* y);
};

struct PoolKernels {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
  PoolLoops<int64_t> i64;
};

TAEDA_TABLES_UP_TO_V3(PoolKernels, pool_kernels)

}  // namespace taeda::cpu::simd
