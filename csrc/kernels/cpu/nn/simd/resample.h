// Sums of few weighted elements along one dimension.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Output i is the sum of weight[t] * x[index[t]] for first[i] <= t < first[i + 1]. Where every
// output has the same number of taps, `each` of them (1, 2 or 4), the further arrays hold tap t of
// output i at [t * out + i].
template <class T> struct TapTable {
  int64_t in, out;
  const int64_t* first;
  const int32_t* index;
  const T* weight;
  int64_t each;
  const int32_t* each_index;
  const T* each_weight;
};

template <class T> struct ResampleLoops {
  // x is (before, in, n), y (before, out, n): rows [begin, end) of the before * out rows of y.
  void (*rows)(const TapTable<T>& taps, int64_t begin, int64_t end, int64_t n, const T* x, T* y);
  // x is (before, in), y (before, out): lines [begin, end).
  void (*lines)(const TapTable<T>& taps, int64_t begin, int64_t end, const T* x, T* y);
  // x is (in, n), g (out, n): for each tap of the outputs [begin, end), sum[t] is the product of
  // g's row and the tap's row of x.
  void (*products)(const TapTable<T>& taps, int64_t begin, int64_t end, int64_t n, const T* x,
                   const T* g, T* sum);
};

TAEDA_TABLES_UP_TO_V3(ForFloats<ResampleLoops>, resample_kernels)

}  // namespace taeda::cpu::simd
