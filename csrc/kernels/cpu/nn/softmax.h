// softmax and log_softmax over the middle of (outer, size, inner), contiguous memory. T: float or
// double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct SoftmaxShape {
  int64_t outer, size, inner;
};

template <class T> struct Softmax {
  // Log: the logarithms.
  static void softmax(const SoftmaxShape& s, bool log, const T* x, T* y);
  // gx = y * (g - sum(g * y)), and for the logarithm gx = g - exp(y) * sum(g).
  static void backward(const SoftmaxShape& s, bool log, const T* g, const T* y, T* gx);
};

}  // namespace taeda::cpu
