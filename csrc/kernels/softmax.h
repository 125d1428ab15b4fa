// softmax and log_softmax over the middle of (outer, size, inner), contiguous memory.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "kernels/kernels.h"

namespace taeda {

struct SoftmaxShape {
  int64_t outer, size, inner;
};

// T: float, double. For Half and BFloat16, which are computed in float, a device may have them; ops
// convert where it has none, as for the CPU.
template <class T> struct SoftmaxKernels {
  // `log`: the logarithms.
  KernelFn<void(const SoftmaxShape& s, bool log, const T* x, T* y)> softmax;
  // gx = y * (g - sum(g * y)), and for the logarithm gx = g - exp(y) * sum(g).
  KernelFn<void(const SoftmaxShape& s, bool log, const T* g, const T* y, T* gx)> backward;

  static const SoftmaxKernels cpu;
};
template <> const SoftmaxKernels<Half> SoftmaxKernels<Half>::cpu;  // none
template <> const SoftmaxKernels<BFloat16> SoftmaxKernels<BFloat16>::cpu;

}  // namespace taeda
