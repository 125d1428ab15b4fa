// Householder reflectors and the products of columns and vectors that they are made of.
//
// Columns are aligned to kColumnBlock elements and padded with zeros to a multiple of it, which `n`
// counts; `from` is such a multiple too. So no loop has a tail. Loops over several columns take
// kColumns at once, and may read (and write back unchanged) zero columns behind the last one.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kColumnBlock = 16;

// Columns that are read together: each needs a register for its sum and one for its factor.
constexpr int64_t kColumns = kRegisters >= 32 ? 8 : 4;

FN int64_t block_down(int64_t n) { return n / kColumnBlock * kColumnBlock; }
FN int64_t block_up(int64_t n) { return block_down(n + kColumnBlock - 1); }

// The largest |x[i]|; NaN where an element is NaN.
template <class T> FN T largest_size(int64_t n, const T* x) {
  Vec<T> most{};
  auto take = [&](Vec<T> v) {
    v = v < 0 ? -v : v;
    most = (v > most) | (v != v) ? v : most;
  };
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) take(load(x + i));
  if (i < n) take(FirstLanes<T>(n - i).load(x + i));
  return reduce(most, [](auto a, auto b) { return (a > b) | (a != a) ? a : b; });
}
// Whether the squares of numbers up to `most` neither overflow nor vanish beside its rounding.
template <class T> FN bool can_be_squared(T most) {
  constexpr T least = sizeof(T) == 4 ? T(0x1p-51) : T(0x1p-485);
  return most >= least && most <= 1 / least;
}

// out[c] = the inner product of column c and x.
template <int64_t Count, class T>
FN void some_dots(int64_t from, int64_t n, const T* a, int64_t ld, const T* x, T* out) {
  Vec<T> sum[Count] = {};
  for (int64_t r = from; r < n; r += kLanes<T>) {
    const Vec<T> v = load(x + r);
    for (int64_t k = 0; k < Count; ++k) sum[k] += load(a + k * ld + r) * v;
  }
  for (int64_t k = 0; k < Count; ++k) out[k] = reduce_add(sum[k]);
}
template <class T> FN T dot(int64_t from, int64_t n, const T* x, const T* y) {
  T out;
  some_dots<1>(from, n, x, n, y, &out);
  return out;
}

// The reflector 1 - tau v v' that maps v, given from element `first` on, to (beta, 0, 0, ...).
// Overwrites v, with v[first] = 1, and returns tau. Before `first`, v must be zero from the start
// of its block on.
template <class T> FN T make_reflector(int64_t first, int64_t n, T* v, T& beta) {
  constexpr T least = sizeof(T) == 4 ? T(0x1p-103) : T(0x1p-970);
  const int64_t begin = block_down(first);
  T scale = 1, alpha = v[first];
  v[first] = 0;
  T square = dot(begin, n, v, v);
  const T sum = alpha * alpha + square;
  if (!(sum >= least && sum <= 1 / least)) {
    const T most = max(taeda::TAEDA_ISA::abs(alpha), largest_size(n - begin, v + begin));
    if (most > 0 && !isinf(most)) {
      scale = static_cast<T>(__builtin_ldexp(1.0, __builtin_ilogb(static_cast<double>(most))));
      alpha /= scale;
      for (int64_t r = begin; r < n; ++r) v[r] /= scale;
      square = dot(begin, n, v, v);
    }
  }
  T tau = 0;
  beta = alpha;
  if (square != 0) {
    beta = copysign(taeda::TAEDA_ISA::sqrt(alpha * alpha + square), -alpha);
    tau = (beta - alpha) / beta;
    const T inverse = 1 / (alpha - beta);
    for (int64_t r = begin; r < n; r += kLanes<T>) store(v + r, load(v + r) * inverse);
  }
  v[first] = 1;
  beta *= scale;
  return tau;
}

// Columns first <= c < last of a become (1 - tau v v') a.
template <class T>
FN void reflect_columns(int64_t from, int64_t n, T tau, const T* v, int64_t first, int64_t last,
                        T* a, int64_t ld) {
  for (int64_t c = first; c < last; c += kColumns) {
    T* column = a + c * ld;
    T factors[kColumns];
    some_dots<kColumns>(from, n, column, ld, v, factors);
    for (int64_t k = 0; k < kColumns; ++k) factors[k] *= -tau;
    for (int64_t r = from; r < n; r += kLanes<T>) {
      const Vec<T> x = load(v + r);
      for (int64_t k = 0; k < kColumns; ++k) {
        T* const to = column + k * ld + r;
        store(to, load(to) + x * factors[k]);
      }
    }
  }
}

// y = the columns first <= c < last of a, each times x[c].
template <class T>
FN void sum_columns(int64_t from, int64_t n, const T* a, int64_t ld, int64_t first, int64_t last,
                    const T* x, T* y) {
  constexpr int64_t step = 4;
  for (int64_t r = from; r < n; r += kLanes<T>) {
    Vec<T> sum[step] = {};
    int64_t c = first;
    for (; c + step <= last; c += step) {
      for (int64_t k = 0; k < step; ++k) sum[k] += load(a + (c + k) * ld + r) * x[c + k];
    }
    for (; c < last; ++c) sum[0] += load(a + c * ld + r) * x[c];
    store(y + r, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
