// Mixed precision: the gradients of a loss that was scaled, and the scale.
#pragma once

#include <span>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// n elements in memory, of a floating dtype of at least 16 bits.
struct ScaledGradient {
  void* data;
  int64_t n;
  DType dtype;
};

// How the scale goes on after a step.
struct ScaleRule {
  double growth, backoff;
  int32_t interval;
};

struct AmpKernels {
  // Multiplies all elements by *factor, and sets *found to 1 where one is infinite or nan. `grads`
  // is host memory.
  KernelFn<void(std::span<const ScaledGradient> grads, const float* factor, float* found)> unscale;
  // Where *found is not 0, the scale falls. It grows after `interval` steps without, which
  // *tracker counts, unless it would be infinite.
  KernelFn<void(float* scale, int32_t* tracker, const float* found, const ScaleRule& rule)> update;

  static const AmpKernels cpu;
};

}  // namespace taeda

namespace taeda::plain {

// What `update` does to the three numbers.
constexpr void update_scale(float* scale, int32_t* tracker, float found, const ScaleRule& rule) {
  if (found != 0) {
    *scale = static_cast<float>(*scale * rule.backoff);
    *tracker = 0;
  } else if (++*tracker == rule.interval) {
    const auto grown = static_cast<float>(*scale * rule.growth);
    if (grown <= 3.4028234663852886e38f) *scale = grown;
    *tracker = 0;
  }
}

}  // namespace taeda::plain
