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

template <int... I> using Ints = std::integer_sequence<int, I...>;
template <class T> using Lanes = std::make_integer_sequence<int, kLanes<T>>;

// Every other element of two vectors, the second of which begins with the first one's last: so
// nothing is read after the last element that counts.
template <class T, int... I> FN void every_other(Ints<I...>, const T* from, T* to) {
  constexpr int lanes = sizeof...(I);
  store(to, __builtin_shufflevector(load(from), load(from + lanes - 1),
                                    (I < lanes / 2 ? 2 * I : 2 * I + 1)...));
}
// Every fourth of four vectors, the last of which begins three elements early.
template <class T, int... I> FN void every_fourth(Ints<I...>, const T* from, T* to) {
  constexpr int lanes = sizeof...(I), half = lanes / 2, fourth = lanes / 4;
  const auto a = load(from), b = load(from + lanes), c = load(from + 2 * lanes),
             d = load(from + 3 * lanes - 3);
  const auto x = __builtin_shufflevector(a, b, (I < half ? 4 * I : 0)...);
  const auto y = __builtin_shufflevector(c, d, (I < fourth ? 4 * I : I < half ? 4 * I + 3 : 0)...);
  store(to, __builtin_shufflevector(x, y, (I < half ? I : lanes + I - half)...));
}

// to[i] = from[i * step], i < n.
template <class T> void load_strided(const T* from, int64_t step, int64_t n, T* to) {
  constexpr int64_t lanes = kLanes<T>;
  if (step == 2 && n >= lanes) {
    for (int64_t i = 0; i + lanes < n; i += lanes) every_other(Lanes<T>{}, from + 2 * i, to + i);
    return every_other(Lanes<T>{}, from + 2 * (n - lanes), to + n - lanes);
  }
  if constexpr (lanes >= 4) {
    if (step == 4 && n >= lanes) {
      for (int64_t i = 0; i + lanes < n; i += lanes) every_fourth(Lanes<T>{}, from + 4 * i, to + i);
      return every_fourth(Lanes<T>{}, from + 4 * (n - lanes), to + n - lanes);
    }
  }
  for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
}

// The lower or the upper half of a[0], b[0], a[1], b[1], ...
template <bool Upper, class V, int... I> FN V interleaved(Ints<I...>, V a, V b) {
  constexpr int lanes = sizeof...(I);
  return __builtin_shufflevector(a, b, ((Upper * lanes + I) / 2 + I % 2 * lanes)...);
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
      store(low, load(low) + interleaved<false>(Lanes<T>(), v, Vec<T>{}));
      store(high, load(high) + interleaved<true>(Lanes<T>(), v, Vec<T>{}));
    }
  }
  for (; i < n; ++i) to[step * i] = static_cast<T>(to[step * i] + from[i]);
}

// to[2 * i] = even[i] and to[2 * i + 1] = odd[i], of n elements.
template <class T> FN void interleave(const T* even, const T* odd, int64_t n, T* to) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n / 2; i += kLanes<T>) {
    store(to + 2 * i, interleaved<false>(Lanes<T>(), load(even + i), load(odd + i)));
    store(to + 2 * i + kLanes<T>, interleaved<true>(Lanes<T>(), load(even + i), load(odd + i)));
  }
  for (; i < n / 2; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
  if (n % 2 != 0) to[2 * i] = even[i];
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
