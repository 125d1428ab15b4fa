// The inner loops of depthwise convolution: one plane with one kernel, with neighbours of a row
// across the registers; and some planes as [position][channel], with channels across them.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// A plane (or planes, in depth) with zeros around it, so that windows never leave it. The columns
// of a row are sorted by their remainder modulo `step`, the horizontal stride, one remainder after
// another, `part` columns each: then neighbouring outputs read neighbouring elements.
struct PaddedPlane {
  int64_t in[3];      // sizes without the zeros
  int64_t before[3];  // zeros along each dimension; if negative, that much of it is left out
  int64_t size[3];    // sizes with them
  int64_t step, part;

  int64_t row() const { return step * part; }
  int64_t elements() const { return size[0] * size[1] * row(); }
};

// What sums over a padded plane x read: columns of `height` taps, whose weights are weight_row
// apart, and which read rows of x that lie x_row apart.
struct PlaneTaps {
  int64_t height, columns;
  int64_t step;  // such rows from one output to the next
  int64_t x_plane, x_row, weight_row;
  const int64_t *at, *weight;  // where each column begins in x, and in the weights
  int64_t planes, rows, cols;  // of outputs, or of their gradients ...
  int64_t y_plane, y_row;      // ... which lie so far apart
};

// One dimension: result r is summed over the pairs a[i], b[i], first[r] <= i < first[r + 1], of
// indices along this dimension of the two operands.
struct Pairs {
  int64_t results;
  const int64_t *first, *a, *b;
};

// Results along w, y_step apart from y on, that are summed over the pairs [first, last) of the same
// a, with b b_step apart.
struct PairRun {
  int64_t y, y_step, results, first, last, b_step;
};

// The strides of dimensions are in all of these.
struct PairSums {
  Pairs d, h, w;
  const PairRun* runs;
  int64_t many, y_row;  // runs of a row of results, and from one row to the next
};

template <class T> struct DepthwiseLoops {
  // ---- planes ----
  int64_t lanes;   // of a register
  int64_t beyond;  // elements that may be read after a padded plane
  // to: fresh memory, or as another such plane has left it.
  void (*pad)(const PaddedPlane& p, const T* x, bool fresh, T* to);
  // y = start + the sums of weights times x.
  void (*sum)(const PlaneTaps& taps, const T* x, const T* weight, T start, T* y);
  // sums[tap][lane] += the sums of x times gy, whose rows have zeros up to a register's end; the
  // lanes are to be added up.
  void (*add)(const PlaneTaps& taps, const T* x, const T* gy, T* sums);
  // y[i * step + r] = x[r * part + i], of `cols` elements, in each of some rows.
  void (*join)(int64_t rows, int64_t cols, int64_t step, int64_t part, const T* x, T* y);

  // ---- channels ----
  int64_t channels;  // of a block, side by side
  // All three passes are sums over pairs of elements that meet: for a block of channels, y[result]
  // = start + the sum of a * b, or without `start` += it, in the rows [first, last) of results.
  void (*sum_pairs)(const PairSums& sums, int64_t first, int64_t last, const T* a, const T* b,
                    const T* start, T* y);
};

TAEDA_TABLES(ForFloats<DepthwiseLoops>, depthwise_kernels)

}  // namespace taeda::cpu::simd
