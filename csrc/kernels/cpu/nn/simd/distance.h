// Distances between one row and many.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct DistanceLoops {
  // out[j], for j < n: the sum over c < k of |a[c] - b[c * step + j]|, or the root of the sum of
  // the squares. As many of b[c * step + j] are read from j = n on as fill up a register.
  void (*absolute)(const T* a, const T* b, int64_t n, int64_t step, int64_t k, T* out);
  void (*euclidean)(const T* a, const T* b, int64_t n, int64_t step, int64_t k, T* out);
  // row[j], for j < n: the root of norm + norms[j] + row[j], the squares of the lengths of two
  // vectors and their product times -2. -1, and the result is false, where most of the digits
  // cancel or something is not finite.
  bool (*from_products)(T norm, const T* norms, int64_t n, T* row);
  // sum[c], for c < k: the sum over j < n of g[j] with the sign of a[c] - b[j * k + c].
  void (*signs)(const T* g, const T* a, const T* b, int64_t n, int64_t k, T* sum);
};

TAEDA_TABLES_UP_TO_V3(ForFloats<DistanceLoops>, distance_kernels)

}  // namespace taeda::cpu::simd
