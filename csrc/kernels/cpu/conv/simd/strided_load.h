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

template <class T, int... I>
FN void deinterleave_vectors(Ints<I...>, const T* from, T* even, T* odd) {
  const auto a = load(from), b = load(from + sizeof...(I));
  store(even, __builtin_shufflevector(a, b, (2 * I)...));
  store(odd, __builtin_shufflevector(a, b, (2 * I + 1)...));
}
template <class T, int... I>
FN void interleave_vectors(Ints<I...>, const T* even, const T* odd, T* to) {
  constexpr int lanes = sizeof...(I);
  const auto a = load(even), b = load(odd);
  store(to, __builtin_shufflevector(a, b, (I / 2 + I % 2 * lanes)...));
  store(to + lanes, __builtin_shufflevector(a, b, ((lanes + I) / 2 + I % 2 * lanes)...));
}

// even[i] = from[2 * i] and odd[i] = from[2 * i + 1], of n elements.
template <class T> FN void deinterleave(const T* from, int64_t n, T* even, T* odd) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n / 2; i += kLanes<T>)
    deinterleave_vectors(Lanes<T>{}, from + 2 * i, even + i, odd + i);
  for (; i < n / 2; ++i) {
    even[i] = from[2 * i];
    odd[i] = from[2 * i + 1];
  }
  if (n % 2 != 0) even[i] = from[2 * i];
}
// to[2 * i] += from[i] of a vector; in between 0 is added.
template <class T, int... I> FN void add_to_even(Ints<I...>, const T* from, T* to) {
  constexpr int lanes = sizeof...(I);
  const auto a = load<lanes>(from), zeros = Vec<T, lanes>{};
  const auto low = __builtin_shufflevector(a, zeros, (I % 2 == 0 ? I / 2 : lanes)...);
  const auto high = __builtin_shufflevector(a, zeros, (I % 2 == 0 ? (lanes + I) / 2 : lanes)...);
  store(to, load<lanes>(to) + low);
  store(to + lanes, load<lanes>(to + lanes) + high);
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
    for (; i + kLanes<T> < n; i += kLanes<T>) add_to_even(Lanes<T>(), from + i, to + 2 * i);
  }
  for (; i < n; ++i) to[step * i] = static_cast<T>(to[step * i] + from[i]);
}

// to[2 * i] = even[i] and to[2 * i + 1] = odd[i], of n elements.
template <class T> FN void interleave(const T* even, const T* odd, int64_t n, T* to) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n / 2; i += kLanes<T>)
    interleave_vectors(Lanes<T>{}, even + i, odd + i, to + 2 * i);
  for (; i < n / 2; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
  if (n % 2 != 0) to[2 * i] = even[i];
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
