// Rows combined with others, element by element, and the check of indices.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

enum Combination { kAdd, kMultiply, kMax, kMin };

// to[i] = to[i] and from[i] combined, i < n. The rows do not overlap, unless they are the same.
using Combine = void (*)(void* to, const void* from, int64_t n);

struct IndexKernels {
  // By the combination and the dtype's number; null for extremes of complex numbers.
  Combine combine[4][12];
  // Whether any index lies outside of [low, high); low <= 0 <= high.
  bool (*any_outside)(const int64_t* index, int64_t n, int64_t low, int64_t high);
};

TAEDA_TABLES(IndexKernels, index_kernels)

}  // namespace taeda::cpu::simd
