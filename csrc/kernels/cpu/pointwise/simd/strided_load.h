// Every so-manieth element of a row, and rows of such brought together again.
#pragma once

#include <cstdint>
#include <utility>

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

// Every fourth element of four registers, the last of which begins three before its place: so
// nothing is read after the last element that counts here either.
template <class T, int... I>
FN void every_fourth(std::integer_sequence<int, I...>, const T* from, T* to) {
  using V = typename Vector<T>::type;
  constexpr int lanes = sizeof...(I), half = lanes / 2, fourth = lanes / 4;
  const V a = at(from), b = at(from + lanes), c = at(from + 2 * lanes),
          d = at(from + 3 * lanes - 3);
  const V x = __builtin_shufflevector(a, b, (I < half ? 4 * I : 0)...);
  const V y = __builtin_shufflevector(c, d, (I < fourth ? 4 * I : I < half ? 4 * I + 3 : 0)...);
  at(to) = __builtin_shufflevector(x, y, (I < half ? I : lanes + I - half)...);
}

// to[i] = from[i * step], i < n.
template <class T> void every(const T* from, int64_t step, int64_t n, T* to) {
  if constexpr (kLanes<T> >= 4) {
    if (step == 4 && n >= kLanes<T>) {
      const std::make_integer_sequence<int, kLanes<T>> lanes;
      for (int64_t i = 0; i + kLanes<T> < n; i += kLanes<T>)
        every_fourth(lanes, from + 4 * i, to + i);
      return every_fourth(lanes, from + 4 * (n - kLanes<T>), to + n - kLanes<T>);
    }
  }
  constexpr int64_t together = 32 / sizeof(T);
  if (step == 2 && n >= together) {
    for (int64_t i = 0; i + together < n; i += together) every_other(from + 2 * i, to + i);
    every_other(from + 2 * (n - together), to + n - together);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
  }
}

// Registers of L elements, as many as there are room for or fewer.
template <class T, int L> struct Some {
  typedef T type __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
};

// The elements of two registers in turn, and those in even and in odd places.
template <class T, int... I>
FN void in_turn(std::integer_sequence<int, I...>, const T* even, const T* odd, T* to) {
  using V = typename Some<T, sizeof...(I)>::type;
  constexpr int lanes = sizeof...(I);
  const V a = *reinterpret_cast<const V*>(even), b = *reinterpret_cast<const V*>(odd);
  *reinterpret_cast<V*>(to) = __builtin_shufflevector(a, b, (I / 2 + I % 2 * lanes)...);
  *reinterpret_cast<V*>(to + lanes) =
      __builtin_shufflevector(a, b, ((lanes + I) / 2 + I % 2 * lanes)...);
}
template <class T, int... I>
FN void apart(std::integer_sequence<int, I...>, const T* from, T* even, T* odd) {
  using V = typename Some<T, sizeof...(I)>::type;
  const V a = *reinterpret_cast<const V*>(from),
          b = *reinterpret_cast<const V*>(from + sizeof...(I));
  *reinterpret_cast<V*>(even) = __builtin_shufflevector(a, b, (2 * I)...);
  *reinterpret_cast<V*>(odd) = __builtin_shufflevector(a, b, (2 * I + 1)...);
}

// even[i] = from[2 * i] and odd[i] = from[2 * i + 1], of n elements.
template <class T, int L = kLanes<T>> FN void halve(const T* from, int64_t n, T* even, T* odd) {
  if (n < 2 * L) {
    if constexpr (L * sizeof(T) > 16) return halve<T, L / 2>(from, n, even, odd);
    for (int64_t i = 0; i < n; ++i) (i % 2 == 0 ? even : odd)[i / 2] = from[i];
    return;
  }
  const std::make_integer_sequence<int, L> lanes;
  const int64_t pairs = n / 2;
  int64_t i = 0;
  for (; i + L <= pairs; i += L) apart(lanes, from + 2 * i, even + i, odd + i);
  if (i < pairs) {
    i = pairs - L;
    apart(lanes, from + 2 * i, even + i, odd + i);
  }
  if (n % 2 != 0) even[pairs] = from[n - 1];
}

// to[2 * i] = even[i] and to[2 * i + 1] = odd[i], as many as n elements.
template <class T, int L = kLanes<T>>
FN void weave_two(const T* even, const T* odd, int64_t n, T* to) {
  const int64_t pairs = n / 2;
  if (pairs < L) {
    if constexpr (L * sizeof(T) > 16) return weave_two<T, L / 2>(even, odd, n, to);
    for (int64_t i = 0; i < n; ++i) to[i] = (i % 2 == 0 ? even : odd)[i / 2];
    return;
  }
  const std::make_integer_sequence<int, L> lanes;
  int64_t i = 0;
  for (; i + L <= pairs; i += L) in_turn(lanes, even + i, odd + i, to + 2 * i);
  if (i < pairs) {
    i = pairs - L;
    in_turn(lanes, even + i, odd + i, to + 2 * i);
  }
  if (n % 2 != 0) to[n - 1] = even[pairs];
}

// to[i] = rows[i % step][i / step], i < n, where the rows follow one another in `from`.
template <class T> void weave(const T* from, int64_t step, int64_t n, T* to) {
  if (step == 2) return weave_two(from, from + (n - n / 2), n, to);
  for (int64_t r = 0; r < step; ++r) {
    for (int64_t i = r; i < n; i += step) to[i] = *from++;
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
