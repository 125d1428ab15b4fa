// The inner loop of depthwise convolution with channels across the registers: all three passes are
// sums over pairs of elements that meet, in planes of [position][channel].
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// One dimension: result r is summed over the pairs a[i], b[i], first[r] <= i < first[r + 1], of
// indices along this dimension of the two operands.
struct Pairs {
  int64_t results;
  const int64_t *first, *a, *b;
};

template <class T> struct DepthwiseLoops {
  int64_t channels;  // of a block, side by side
  // y[result] += the sum over pairs of a * b, for a block of channels. The strides of dimensions
  // are in the pairs already.
  void (*sum)(const Pairs (&pairs)[3], const T* a, const T* b, T* y);
};

struct DepthwiseKernels {
  DepthwiseLoops<float> f32;
  DepthwiseLoops<double> f64;
};

TAEDA_TABLES(DepthwiseKernels, depthwise_kernels)

}  // namespace taeda::cpu::simd
