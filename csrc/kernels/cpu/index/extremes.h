// The least and the greatest of a line.
#pragma once

#include <cstdint>

namespace taeda::cpu {

template <class T> struct Extremes {
  T least, most;
};
// n > 0. NaN counts only where it comes first.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] Extremes<T> extremes_of(const T* x, int64_t n) {
  Extremes<T> e{x[0], x[0]};
  for (int64_t i = 0; i < n; ++i) {
    e.least = x[i] < e.least ? x[i] : e.least;
    e.most = x[i] > e.most ? x[i] : e.most;
  }
  return e;
}

}  // namespace taeda::cpu
