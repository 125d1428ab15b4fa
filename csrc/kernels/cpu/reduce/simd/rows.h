// Loops along one contiguous row, or down neighbouring columns: sums, largest elements, elementwise
// results.
//
// Each takes the loop's body as f(i, lanes), which gives elements i, i + 1, ... as a
// Vec<T, lanes>; `lanes` is a constant: a register's, or 1 for the tail. So one body, written with
// load<lanes>(p), serves both.
//
// Only for files compiled once for each instruction set (those under simd/).
#pragma once

#include "kernels/cpu/simd/half.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <int64_t N> struct Lanes {
  constexpr operator int64_t() const { return N; }
};

// Elements that are added up in T; sums of longer rows are sums of such blocks, in double.
constexpr int64_t kSumBlock = 512;

// sums[k] = the sum over i < n of term[k], where f(i, lanes, term) fills the array `term`. Several
// accumulators for each sum hide the latency of the additions.
template <class T, int K, class F> FN void sums_over(int64_t n, double* sums, F&& f) {
  constexpr int64_t w = kLanes<T>;
  constexpr int kAccumulators = 4;
  for (int k = 0; k < K; ++k) sums[k] = 0;
  int64_t i = 0;
  while (i + w <= n) {
    Vec<T> acc[kAccumulators][K] = {}, term[K];
    const int64_t end = n - i < kSumBlock ? n : i + kSumBlock;
    auto add = [&](Vec<T>* to) {
      f(i, Lanes<w>{}, term);
      for (int k = 0; k < K; ++k) to[k] += term[k];
      i += w;
    };
    while (i + kAccumulators * w <= end) {
      for (auto& to : acc) add(to);
    }
    while (i + w <= end) add(acc[0]);
    for (int k = 0; k < K; ++k) {
      sums[k] += reduce_add<double>((acc[0][k] + acc[1][k]) + (acc[2][k] + acc[3][k]));
    }
  }
  for (T term[K]; i < n; ++i) {
    f(i, Lanes<1>{}, term);
    for (int k = 0; k < K; ++k) sums[k] += static_cast<double>(term[k]);
  }
}
template <class T, class F> FN double sum_over(int64_t n, F&& f) {
  double sum;
  sums_over<T, 1>(n, &sum, [&](int64_t i, auto lanes, auto* term) { *term = f(i, lanes); });
  return sum;
}

template <class T> FN double sum(const T* x, int64_t n) {
  return sum_over<T>(n, [&](int64_t i, auto lanes) { return load<lanes>(x + i); });
}
template <class T> FN double dot(const T* a, const T* b, int64_t n) {
  return sum_over<T>(
      n, [&](int64_t i, auto lanes) { return load<lanes>(a + i) * load<lanes>(b + i); });
}

// The largest of x, minus infinity where there is none. NaN is skipped.
template <class T> FN T largest(const T* x, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  T best = -static_cast<T>(__builtin_inf());
  int64_t i = 0;
  if (n >= w) {
    Vec<T> m[4];
    for (auto& v : m) v = broadcast<Vec<T>>(best);
    for (; i + 4 * w <= n; i += 4 * w) {
      for (int k = 0; k < 4; ++k) m[k] = max(load(x + i + k * w), m[k]);
    }
    for (; i + w <= n; i += w) m[0] = max(load(x + i), m[0]);
    best = reduce(max(max(m[0], m[1]), max(m[2], m[3])), [](auto a, auto b) { return max(a, b); });
  }
  for (; i < n; ++i) best = max(x[i], best);
  return best;
}

// y[i] = f(i), by non-temporal stores where `streamed`; then stream_fence() before another thread
// reads y.
template <class T, class F> FN void map_row(int64_t n, T* y, bool streamed, F&& f) {
  constexpr int64_t w = kLanes<T>;
  int64_t i = 0;
  if (streamed) {
    for (; i < n && reinterpret_cast<uintptr_t>(y + i) % kRegisterBytes != 0; ++i)
      y[i] = f(i, Lanes<1>{});
    for (; i + w <= n; i += w) stream(y + i, f(i, Lanes<w>{}));
  } else {
    for (; i + w <= n; i += w) store(y + i, f(i, Lanes<w>{}));
  }
  for (; i < n; ++i) y[i] = f(i, Lanes<1>{});
}

// ---- down columns, `width` neighbouring ones of a matrix ----

// sums[0 .. lanes) += v, in double.
template <class V> FN void add_to(double* sums, V v) {
  if constexpr (sizeof(ElementOf<V>) == 4 && kLanesOf<V> > 1) {
    add_to(sums, convert<double>(low_half(v)));
    add_to(sums + kLanesOf<V> / 2, convert<double>(high_half(v)));
  } else {
    store(sums, load<kLanesOf<V>>(sums) + convert<double>(v));
  }
}

// sums[k][j] = the sum over r < rows of term[k], where f(r, j, lanes, term) fills the array `term`
// for row r and columns j, j + 1, ... Eight rows are added in T before they go to the sums.
template <class T, int K, class F>
FN void sum_columns(int64_t rows, int64_t width, double* const (&sums)[K], F&& f) {
  constexpr int64_t group = 8;
  for (double* s : sums) {
    for (int64_t j = 0; j < width; ++j) s[j] = 0;
  }
  for (int64_t first = 0; first < rows; first += group) {
    const int64_t end = rows - first < group ? rows : first + group;
    auto add = [&](int64_t begin, auto lanes, auto vectors) {
      Vec<T, lanes> acc[vectors][K] = {}, term[K];
      for (int64_t r = first; r < end; ++r) {
        for (int v = 0; v < vectors; ++v) {
          f(r, begin + v * lanes, lanes, term);
          for (int k = 0; k < K; ++k) acc[v][k] += term[k];
        }
      }
      for (int v = 0; v < vectors; ++v) {
        for (int k = 0; k < K; ++k) add_to(sums[k] + begin + v * lanes, acc[v][k]);
      }
    };
    // A cache line of each row at a time: rows may share a set of the cache and evict each other.
    constexpr int64_t line = kCacheLine / static_cast<int64_t>(sizeof(T)), w = kLanes<T>;
    int64_t j = 0;
    for (; j + line <= width; j += line) add(j, Lanes<w>{}, Lanes<line / w>{});
    for (; j < width; ++j) add(j, Lanes<1>{}, Lanes<1>{});
  }
}

// y[r step + j] = f(r, j, lanes)
template <class T, class F>
FN void map_columns(int64_t rows, int64_t step, int64_t width, T* y, F&& f) {
  for (int64_t r = 0; r < rows; ++r)
    map_row(width, y + r * step, false, [&](int64_t j, auto lanes) { return f(r, j, lanes); });
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
