// Putting together what tasks have summed apart from each other, in an order that no number of
// threads changes. T: float or double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// y[i] = x[i] + x[n + i] + ..., of `parts` parts. y may be x.
template <class T> void add_parts(const T* x, int64_t parts, int64_t n, T* y);

// y[i] = the sum of x[i * lanes + k] over k < lanes, of n registers of sums; on this thread.
template <class T> void add_lanes(const T* x, int64_t n, int64_t lanes, T* y);

}  // namespace taeda::cpu
