// Systems with a small triangle and many right sides: lane l of a vector computes with side l.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct TriangleLoops {
  static constexpr int64_t kMost = 64;  // rows and columns

  // x (sides x n) = the solution of x m = x, where m is upper, or lower with its rows and columns
  // counted from the last one (steps below 0). Element (i, j) of m is m[i * row + j * col], of x
  // x[i + j * step].
  void (*solve)(int64_t n, int64_t sides, bool unit, const T* m, int64_t row, int64_t col, T* x,
                int64_t step);
};

TAEDA_TABLES(ForFloats<TriangleLoops>, triangle_kernels)

}  // namespace taeda::cpu::simd
