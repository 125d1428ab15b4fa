// Every so-manieth element of a row, and rows of such brought together again.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

// Every other element of two registers, the second of which begins with the first one's last: so
// nothing is read after the last element that counts.
FN void every_other(const float* from, float* to) {
  const auto a = *reinterpret_cast<const Eight*>(from);
  const auto b = *reinterpret_cast<const Eight*>(from + 7);
  *reinterpret_cast<Eight*>(to) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
}
FN void every_other(const double* from, double* to) {
  const auto a = *reinterpret_cast<const Four*>(from);
  const auto b = *reinterpret_cast<const Four*>(from + 3);
  *reinterpret_cast<Four*>(to) = __builtin_shufflevector(a, b, 0, 2, 5, 7);
}

// to[i] = from[i * step], i < n.
template <class T> void every(const T* from, int64_t step, int64_t n, T* to) {
  constexpr int64_t together = 32 / sizeof(T);
  if (step == 2 && n >= together) {
    for (int64_t i = 0; i + together < n; i += together) every_other(from + 2 * i, to + i);
    every_other(from + 2 * (n - together), to + n - together);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
  }
}

// The elements of two registers in turn.
FN void in_turn(const float* even, const float* odd, float* to) {
  const auto a = *reinterpret_cast<const Eight*>(even), b = *reinterpret_cast<const Eight*>(odd);
  const auto first = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  const auto second = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  *reinterpret_cast<Eight*>(to) = first;
  *reinterpret_cast<Eight*>(to + 8) = second;
}
FN void in_turn(const double* even, const double* odd, double* to) {
  const auto a = *reinterpret_cast<const Four*>(even), b = *reinterpret_cast<const Four*>(odd);
  const auto first = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const auto second = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(to) = first;
  *reinterpret_cast<Four*>(to + 4) = second;
}

// to[i] = rows[i % step][i / step], i < n, where the rows follow one another in `from`.
template <class T> void weave(const T* from, int64_t step, int64_t n, T* to) {
  constexpr int64_t together = 32 / sizeof(T);
  if (step == 2 && n >= 2 * together) {
    const int64_t pairs = n / 2;
    const T* odd = from + (n - pairs);
    for (int64_t i = 0; i < pairs; i += together) {
      const int64_t at = i + together < pairs ? i : pairs - together;
      in_turn(from + at, odd + at, to + 2 * at);
    }
    if (n % 2 != 0) to[n - 1] = from[pairs];
    return;
  }
  for (int64_t r = 0; r < step; ++r) {
    for (int64_t i = r; i < n; i += step) to[i] = *from++;
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
