// Copying rows: as they are, taken apart by the remainders of their indices, and brought together.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

FN int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// to[j] = from[j] for j < n. The last vector overlaps the one before.
template <class T, int64_t N = kLanes<T>> FN void copy_row(const T* from, int64_t n, T* to) {
  if (n >= N) {
    for (int64_t j = 0; j + N <= n; j += N) store(to + j, load<N>(from + j));
    store(to + n - N, load<N>(from + n - N));
  } else if constexpr (N * sizeof(T) > 16) {
    copy_row<T, N / 2>(from, n, to);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  }
}

// p[0], p[4], ... of four vectors, the last of which begins three elements early: so nothing is
// read after the last element that counts.
template <class T> FN Vec<T> load_every_fourth(const T* p) {
  constexpr int lanes = kLanes<T>, half = lanes / 2, fourth = lanes / 4;
  const auto x = shuffle(load(p), load(p + lanes), [](int i) { return i < half ? 4 * i : 0; });
  const auto y = shuffle(load(p + 2 * lanes), load(p + 3 * lanes - 3), [](int i) {
    return i < fourth ? 4 * i : i < half ? 4 * i + 3 : 0;
  });
  return shuffle(x, y, [](int i) { return i < half ? i : lanes + i - half; });
}

// to[i] = from[i * step], i < n.
template <class T> void load_strided(const T* from, int64_t step, int64_t n, T* to) {
  constexpr int64_t lanes = kLanes<T>;
  if (step == 2 && n >= lanes) {
    for (int64_t i = 0; i + lanes < n; i += lanes)
      store(to + i, load_every_other<lanes>(from + 2 * i));
    return store(to + n - lanes, load_every_other<lanes>(from + 2 * (n - lanes)));
  }
  if constexpr (lanes >= 4) {
    if (step == 4 && n >= lanes) {
      for (int64_t i = 0; i + lanes < n; i += lanes) store(to + i, load_every_fourth(from + 4 * i));
      return store(to + n - lanes, load_every_fourth(from + 4 * (n - lanes)));
    }
  }
  for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
}

// The lower or the upper half of a[0], b[0], a[1], b[1], ...
template <bool Upper, class V> FN V interleaved(V a, V b) {
  constexpr int lanes = kLanesOf<V>;
  return shuffle(a, b, [](int i) { return (Upper * lanes + i) / 2 + i % 2 * lanes; });
}

// to[i] += from[i], i < n.
template <class T> void add_row(const T* __restrict from, int64_t n, T* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}
// to[step * i] += from[i], i < n. Nothing after the last one is written.
template <class T>
[[gnu::noinline]] void add_strided(const T* from, int64_t n, int64_t step, T* to) {
  int64_t i = 0;
  if (step == 2) {
    for (; i + kLanes<T> < n; i += kLanes<T>) {
      T* low = to + 2 * i;
      T* high = low + kLanes<T>;
      const Vec<T> v = load(from + i);
      store(low, load(low) + interleaved<false>(v, Vec<T>{}));
      store(high, load(high) + interleaved<true>(v, Vec<T>{}));
    }
  }
  for (; i < n; ++i) to[step * i] = static_cast<T>(to[step * i] + from[i]);
}

// to[2 * i] = even[i] and to[2 * i + 1] = odd[i], of n elements.
template <class T> FN void interleave(const T* even, const T* odd, int64_t n, T* to) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n / 2; i += kLanes<T>) {
    store(to + 2 * i, interleaved<false>(load(even + i), load(odd + i)));
    store(to + 2 * i + kLanes<T>, interleaved<true>(load(even + i), load(odd + i)));
  }
  for (; i < n / 2; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
  if (n % 2 != 0) to[2 * i] = even[i];
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
