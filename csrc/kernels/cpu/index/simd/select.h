// A first look at a long line, from which a few of its largest elements are wanted.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kSelectGroups = 64;

struct SelectKernels {
  // best[j]: the largest of sign * x[i] for i = j, j + kSelectGroups, ... < n; sign is 1 or -1.
  // Returns whether there is no NaN among them. n >= kSelectGroups.
  bool (*group_maxima)(const float* x, int64_t n, float sign, float* best);
};

TAEDA_TABLES(SelectKernels, select_kernels)

}  // namespace taeda::cpu::simd
