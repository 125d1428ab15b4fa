// The smallest and the largest of a line; and parts of long lines, which threads share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace taeda::cpu {

constexpr int64_t kLongPart = 1 << 16;
inline int64_t parts_of(int64_t n) {
  return std::clamp<int64_t>((n + kLongPart / 2) / kLongPart, 1, 16);
}
// f(part, its first element, how many)
template <class F> void each_part(int64_t n, F&& f) {
  const int64_t parts = parts_of(n), length = (n + parts - 1) / parts;
  parallel_each(parts, 1, [&](int64_t p) { f(p, p * length, std::min(length, n - p * length)); });
}

template <class T> struct Extremes {
  T least, most;
};
// n > 0. NaN counts only where it comes first.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] Extremes<T> extremes_of_part(const T* x, int64_t n) {
  Extremes<T> e{x[0], x[0]};
  for (int64_t i = 0; i < n; ++i) {
    e.least = x[i] < e.least ? x[i] : e.least;
    e.most = x[i] > e.most ? x[i] : e.most;
  }
  return e;
}
template <class T> Extremes<T> extremes_of(const T* x, int64_t n) {
  if (parts_of(n) == 1) return extremes_of_part(x, n);
  std::vector<Extremes<T>> found(static_cast<size_t>(parts_of(n)));
  each_part(n, [&](int64_t p, int64_t first, int64_t m) {
    found[static_cast<size_t>(p)] = extremes_of_part(x + first, m);
  });
  Extremes<T> all = found[0];
  for (const Extremes<T>& e : found)
    all = {std::min(all.least, e.least), std::max(all.most, e.most)};
  return all;
}

}  // namespace taeda::cpu
