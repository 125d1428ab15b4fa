// Numbers as mantissas of absolute value in [0.5, 1) and powers of two.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

template <class T> struct FrexpKernels {  // T: float, double
  // What is not finite has the power 0.
  KernelFn<void(int64_t n, const T* x, T* mantissa, int32_t* power)> frexp;

  static const FrexpKernels cpu;
};

namespace plain {

template <class T> void frexp(int64_t n, const T* x, T* mantissa, int32_t* power) {
  for (int64_t i = 0; i < n; ++i) {
    int e = 0;
    mantissa[i] = std::frexp(x[i], &e);
    power[i] = std::isfinite(x[i]) ? e : 0;
  }
}

}  // namespace plain

template <class T> const FrexpKernels<T> FrexpKernels<T>::cpu = {plain::frexp<T>};

}  // namespace taeda
