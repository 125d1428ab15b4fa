// Vectors and the columns of matrices that a register's lanes run along: inner products, sums of
// columns, reflectors.
//
// Columns begin at multiples of kColumnBlock elements, are filled up to one with zeros, and have as
// many rows: `n`. `from` is such a multiple too. Only for the files of this folder that are
// compiled for each instruction set.
#pragma once

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kColumnBlock = 16;

// Columns at once: as many as there are registers for, each with its sum and its factor.
constexpr int64_t kColumns = kBytes == 64 ? 8 : 4;

FN int64_t block_down(int64_t n) { return n / kColumnBlock * kColumnBlock; }

template <class T> FN T total(typename Vector<T>::type v) { return add_lanes<T, T, kLanes<T>>(v); }

// out[c] = the inner product of column c and x.
template <int64_t Many, class T>
FN void some_dots(int64_t from, int64_t n, const T* a, int64_t ld, const T* x, T* out) {
  using V = typename Vector<T>::type;
  V sum[Many] = {};
  for (int64_t r = from; r < n; r += kLanes<T>) {
    const V v = at(x + r);
    for (int64_t k = 0; k < Many; ++k) sum[k] += at(a + k * ld + r) * v;
  }
  for (int64_t k = 0; k < Many; ++k) out[k] = total<T>(sum[k]);
}

// y += a factors, for some columns of a.
template <int64_t Many, class T>
FN void add_some(int64_t from, int64_t n, const T* a, int64_t ld, const T* factors, T* y) {
  using V = typename Vector<T>::type;
  for (int64_t r = from; r < n; r += kLanes<T>) {
    V sum = at(y + r);
    for (int64_t k = 0; k < Many; ++k) sum += at(a + k * ld + r) * factors[k];
    at(y + r) = sum;
  }
}

// Makes v, whose elements from `first` on are given, the v of the reflector 1 - tau v v' that takes
// them to one number, `beside`, and zeros; returns its tau. v[first] becomes 1. v is zero elsewhere
// from the block of `first` on.
template <class T> FN T make_reflector(int64_t first, int64_t n, T* v, T& beside) {
  using V = typename Vector<T>::type;
  constexpr T least = sizeof(T) == 4 ? T(0x1p-103) : T(0x1p-970);
  const int64_t begin = block_down(first);
  T scale = 1, alpha = v[first], square;
  v[first] = 0;
  some_dots<1>(begin, n, v, n, v, &square);
  const T sum = alpha * alpha + square;
  if (!(sum >= least && sum <= 1 / least)) {
    T most = taeda::TAEDA_ISA::abs(alpha);
    for (int64_t r = begin; r < n; ++r) {
      const T size = taeda::TAEDA_ISA::abs(v[r]);
      most = size > most ? size : most;
    }
    if (most > 0 && !isinf(most)) {
      scale = static_cast<T>(__builtin_ldexp(1.0, __builtin_ilogb(static_cast<double>(most))));
      alpha /= scale;
      for (int64_t r = begin; r < n; ++r) v[r] /= scale;
      some_dots<1>(begin, n, v, n, v, &square);
    }
  }
  T tau = 0, beta = alpha;
  if (square != 0) {
    beta = copysign(taeda::TAEDA_ISA::sqrt(alpha * alpha + square), -alpha);
    tau = (beta - alpha) / beta;
    const T inverse = 1 / (alpha - beta);
    for (int64_t r = begin; r < n; r += kLanes<T>) {
      V& x = at(v + r);
      x = x * inverse;
    }
  }
  v[first] = 1;
  beside = beta * scale;
  return tau;
}

// Columns first <= c < last of a become (1 - tau v v') a. Up to kColumns - 1 more are read, and
// written as they are where they are zeros.
template <class T>
FN void turn_columns(int64_t from, int64_t n, T tau, const T* v, int64_t first, int64_t last, T* a,
                     int64_t ld) {
  using V = typename Vector<T>::type;
  for (int64_t c = first; c < last; c += kColumns) {
    T* column = a + c * ld;
    T factors[kColumns];
    some_dots<kColumns>(from, n, column, ld, v, factors);
    for (int64_t k = 0; k < kColumns; ++k) factors[k] *= -tau;
    for (int64_t r = from; r < n; r += kLanes<T>) {
      const V x = at(v + r);
      for (int64_t k = 0; k < kColumns; ++k) {
        V& to = at(column + k * ld + r);
        to = to + x * factors[k];
      }
    }
  }
}

// y = the columns first <= c < last of a, each times x[c].
template <class T>
FN void sum_columns(int64_t from, int64_t n, const T* a, int64_t ld, int64_t first, int64_t last,
                    const T* x, T* y) {
  using V = typename Vector<T>::type;
  constexpr int64_t step = 4;
  for (int64_t r = from; r < n; r += kLanes<T>) {
    V sum[step] = {};
    int64_t c = first;
    for (; c + step <= last; c += step) {
      for (int64_t k = 0; k < step; ++k) sum[k] += at(a + (c + k) * ld + r) * x[c + k];
    }
    for (; c < last; ++c) sum[0] += at(a + c * ld + r) * x[c];
    at(y + r) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

// Columns first <= c < last of a, each less x times factors[c].
template <class T>
FN void subtract_from_columns(int64_t from, int64_t n, const T* x, const T* factors, int64_t first,
                              int64_t last, T* a, int64_t ld) {
  for (int64_t c = first; c < last; ++c) {
    for (int64_t r = from; r < n; r += kLanes<T>) {
      typename Vector<T>::type& to = at(a + c * ld + r);
      to = to - at(x + r) * factors[c];
    }
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
