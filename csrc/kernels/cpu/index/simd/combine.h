// A line put together with another, element by element.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

enum Combination { kAdd, kMultiply, kMax, kMin };

// to[i] = to[i] and from[i] combined, i < n. The lines do not overlap, unless they are the same.
using Combine = void (*)(void* to, const void* from, int64_t n);

struct CombineKernels {
  Combine of[4][12];  // by the combination, and the dtype's place in the enum; null for extremes of
                      // complex numbers
};

TAEDA_TABLES(CombineKernels, combine_kernels)

}  // namespace taeda::cpu::simd
