// Counting elements into bins.
#pragma once

#include <utility>

#include "base/dtype.h"

namespace taeda::cpu {

// The least and the greatest of n > 0 whole numbers.
std::pair<int64_t, int64_t> whole_range(const void* x, int64_t n, DType dtype);
// out[v] += how often v comes among n whole numbers, all of which lie in [0, bins).
void count_whole(const void* x, int64_t n, DType dtype, int64_t bins, int64_t* out);
// out[b] += how many of n numbers fall into the b-th of `bins` equal intervals of [low, high], by
// (v - low) * bins / (high - low). Those outside do not count.
template <class T>
void count_even(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out);
// out[b] += how many of n numbers lie in [edges[b], edges[b + 1]), the last one with its end. The
// edges are about equally far from each other.
template <class T>
void count_between(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out);

}  // namespace taeda::cpu
