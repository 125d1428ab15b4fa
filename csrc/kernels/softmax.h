// softmax and log_softmax over the middle of (outer, size, inner), contiguous memory.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

struct SoftmaxShape {
  int64_t outer, size, inner;
};

template <class T> struct SoftmaxKernels {  // T: float, double
  // `log`: the logarithms.
  KernelFn<void(const SoftmaxShape& s, bool log, const T* x, T* y)> softmax;
  // gx = y * (g - sum(g * y)), and for the logarithm gx = g - exp(y) * sum(g).
  KernelFn<void(const SoftmaxShape& s, bool log, const T* g, const T* y, T* gx)> backward;

  static const SoftmaxKernels cpu;
};

}  // namespace taeda
