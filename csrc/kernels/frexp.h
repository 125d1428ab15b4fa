// Numbers as mantissas of absolute value in [0.5, 1) and powers of two.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

template <class T> struct FrexpKernels {  // T: float, double
  // What is not finite has the power 0.
  KernelFn<void(int64_t n, const T* x, T* mantissa, int32_t* power)> frexp;

  static const FrexpKernels cpu;
};

}  // namespace taeda
