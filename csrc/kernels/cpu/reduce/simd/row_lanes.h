// Sums along rows, in 64 bytes' worth of lanes.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Where many terms make a sum, a block of them is added up in T, in 64 bytes' worth of lanes, and
// the blocks in double.
constexpr int64_t kSumBlock = 512;
template <class T> struct LanesOf {
  static constexpr int64_t count = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};
template <class T> using Lanes = typename LanesOf<T>::type;

// The sum of f(i), which gives elements i, i + 1, ... as Lanes, and of g(i), which gives one.
template <class T, class F, class G> FN double sum_of(int64_t n, F&& f, G&& g) {
  constexpr int64_t lanes = LanesOf<T>::count;
  double sum = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    Lanes<T> s[4] = {};
    const int64_t end = n - i < kSumBlock ? n : i + kSumBlock;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      for (int k = 0; k < 4; ++k) s[k] += f(i + k * lanes);
    }
    for (; i + lanes <= end; i += lanes) s[0] += f(i);
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    sum += add_lanes<double, T, lanes>(s[0]);
  }
  for (; i < n; ++i) sum += g(i);
  return sum;
}
template <class T> FN const Lanes<T>& lanes_at(const T* x) {
  return *reinterpret_cast<const Lanes<T>*>(x);
}

template <class T> double sum(const T* x, int64_t n) {
  return sum_of<T>(
      n, [&](int64_t i) { return lanes_at(x + i); }, [&](int64_t i) { return double{x[i]}; });
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
