// The geometry that the algorithms share: which input each tap of the kernel reads for an output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline double real(int64_t n) { return static_cast<double>(n); }

using Sizes = const int64_t (&)[3];
inline int64_t volume(Sizes sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// to[j * to_step + i] = from[i * from_step + j], i < rows and j < cols.
template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t cols, T* to,
               int64_t to_step) {
  constexpr int64_t size = sizeof(T);
  const simd::Transpose f = TAEDA_PICK(transpose_kernels).of(size, false);
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
  std::vector<Tap> taps = {};  // by their positions
};

// Inputs [first, first + size) along a dimension, some of them in the padding.
struct Extent {
  int64_t first = 0, size = 0;

  void cover(int64_t from, int64_t until) {
    const int64_t end = size == 0 ? until : std::max(first + size, until);
    first = size == 0 ? from : std::min(first, from);
    size = end - first;
  }
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
std::vector<Problem> forward_problem(const ConvShape& s);
// The gradient of the input as sums over the outputs' gradients: one problem, without strides, for
// each remainder of the inputs' index modulo the stride.
std::vector<Problem> backward_problems(const ConvShape& s);

}  // namespace taeda::cpu
