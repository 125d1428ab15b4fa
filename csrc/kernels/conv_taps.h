// Convolution as sums over taps: which input each tap of the kernel reads for an output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/conv.h"

namespace taeda::conv_taps {

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

inline Axis forward_axis(const ConvShape& s, int d) {
  Axis a{s.in[d], s.out[d], s.stride[d]};
  for (int64_t k = 0; k < s.kernel[d]; ++k) a.taps.push_back({k, k * s.dilation[d] - s.padding[d]});
  return a;
}

// The inputs r, r + stride, ...
inline Axis backward_axis(const ConvShape& s, int d, int64_t r) {
  Axis a{s.out[d], (s.in[d] - r + s.stride[d] - 1) / s.stride[d], 1, r, s.stride[d]};
  for (int64_t k = s.kernel[d] - 1; k >= 0; --k) {
    const int64_t distance = r + s.padding[d] - k * s.dilation[d];
    if (distance % s.stride[d] == 0) a.taps.push_back({k, distance / s.stride[d]});
  }
  return a;
}

// The outputs as sums over the input.
inline std::vector<Problem> forward_problem(const ConvShape& s) {
  return {{forward_axis(s, 0), forward_axis(s, 1), forward_axis(s, 2), s.in_channels / s.groups}};
}

// The gradient of the input as sums over the outputs' gradients: one problem, without strides, for
// each remainder of the inputs' index modulo the stride.
inline std::vector<Problem> backward_problems(const ConvShape& s) {
  std::vector<Problem> list;
  for (int64_t d = 0; d < std::min(s.stride[0], s.in[0]); ++d) {
    for (int64_t h = 0; h < std::min(s.stride[1], s.in[1]); ++h) {
      for (int64_t w = 0; w < std::min(s.stride[2], s.in[2]); ++w) {
        list.push_back({backward_axis(s, 0, d), backward_axis(s, 1, h), backward_axis(s, 2, w),
                        s.out_channels / s.groups});
      }
    }
  }
  return list;
}

}  // namespace taeda::conv_taps
