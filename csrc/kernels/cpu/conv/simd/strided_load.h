// Rows taken apart by the remainders of their indices, and brought together again.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <int... I> using Indices = std::integer_sequence<int, I...>;
template <class T> using Lanes = std::make_integer_sequence<int, kLanes<T>>;

// Every other element of two vectors, the second of which begins with the first one's last: so
// nothing is read after the last element that counts.
template <class T, int... I> FN void every_other(Indices<I...>, const T* from, T* to) {
  constexpr int lanes = sizeof...(I);
  store(to, __builtin_shufflevector(load(from), load(from + lanes - 1),
                                    (I < lanes / 2 ? 2 * I : 2 * I + 1)...));
}
// Every fourth of four vectors, the last of which begins three elements early.
template <class T, int... I> FN void every_fourth(Indices<I...>, const T* from, T* to) {
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
FN void deinterleave_vectors(Indices<I...>, const T* from, T* even, T* odd) {
  const auto a = load(from), b = load(from + sizeof...(I));
  store(even, __builtin_shufflevector(a, b, (2 * I)...));
  store(odd, __builtin_shufflevector(a, b, (2 * I + 1)...));
}
template <class T, int... I>
FN void interleave_vectors(Indices<I...>, const T* even, const T* odd, T* to) {
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
