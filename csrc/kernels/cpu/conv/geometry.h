// The geometry that the algorithms share: which input each tap of the kernel reads for an output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline double real(int64_t n) { return static_cast<double>(n); }

// The product of a shape's sizes.
inline int64_t volume(const ConvShape& s, const int64_t (&sizes)[3]) {
  int64_t v = 1;
  for (int d = 0; d < s.spatial; ++d) v *= sizes[d];
  return v;
}

// The shape in three dimensions, leading ones of size 1.
simd::Window window_of(const ConvShape& s);

// to[j * to_step + i] = from[i * from_step + j], i < rows and j < cols.
template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t cols, T* to,
               int64_t to_step) {
  constexpr int64_t size = sizeof(T);
  const auto& kernels = TAEDA_PICK(transpose_kernels);
  const simd::Transpose f = size == 4 ? kernels.bytes4 : kernels.bytes8;
  f(reinterpret_cast<char*>(to), to_step * size, reinterpret_cast<const char*>(from),
    from_step * size, rows, cols);
}

// One dimension of a sum over taps: output o reads the input o * step + position of each tap, and
// is stored at y_start + o * y_step.
struct Axis {
  struct Tap {
    int64_t number;  // in the kernel
    int64_t position;
  };
  int64_t in, out, step;
  int64_t y_start = 0, y_step = 1;
  std::vector<Tap> taps = {};
};

struct Problem {
  Axis d, h, w;
  int64_t channels;  // that are summed over
  int64_t taps() const {
    return static_cast<int64_t>(d.taps.size() * h.taps.size() * w.taps.size());
  }
  int64_t depth() const { return channels * taps(); }
};

// The outputs as sums over the input.
Problem forward_problem(const ConvShape& s);
// The gradient of the input as sums over the outputs' gradients: one problem, without strides, for
// each remainder of the inputs' index modulo the stride.
void each_remainder(const ConvShape& s, const std::function<void(const Problem&)>& f);

}  // namespace taeda::cpu
