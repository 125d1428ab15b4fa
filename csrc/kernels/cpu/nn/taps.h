// The weighted sums that resizing and sampling are made of.
#pragma once

#include <vector>

#include "kernels/resample.h"

namespace taeda::cpu {

// Which inputs each output of one dimension is made of: see simd/resample.h.
template <class T> struct Taps {
  int64_t in = 0, out = 0, each = 0;
  std::vector<int64_t> first;
  std::vector<int32_t> index, each_index;
  std::vector<T> weight, each_weight;

  // Those of a dimension that is resized.
  static Taps make(const ResampleShape& s, int d);
  Taps transposed() const;

  // x (before, in, after) to y (before, out, after).
  void apply(int64_t before, int64_t after, const T* x, T* y) const;
  // For x (in, after) and g (out, after): the product, for each tap, of its output's row of g and
  // its input's row of x.
  void multiply(int64_t after, const T* x, const T* g, T* products) const;

 private:
  void arrange();
};

}  // namespace taeda::cpu
