#include "kernels/cpu/conv/geometry.h"

namespace taeda::cpu {
namespace {

Axis forward_axis(const ConvShape& s, int d) {
  Axis a{s.in[d], s.out[d], s.stride[d]};
  for (int64_t k = 0; k < s.kernel[d]; ++k) a.taps.push_back({k, k * s.dilation[d] - s.padding[d]});
  return a;
}

// The inputs r, r + stride, ...
Axis backward_axis(const ConvShape& s, int d, int64_t r) {
  Axis a{s.out[d], ceil_div(s.in[d] - r, s.stride[d]), 1, r, s.stride[d]};
  for (int64_t k = s.kernel[d] - 1; k >= 0; --k) {
    const int64_t distance = r + s.padding[d] - k * s.dilation[d];
    if (distance % s.stride[d] == 0) a.taps.push_back({k, distance / s.stride[d]});
  }
  return a;
}

}  // namespace

std::vector<Problem> forward_problem(const ConvShape& s) {
  return {{forward_axis(s, 0), forward_axis(s, 1), forward_axis(s, 2), s.in_channels / s.groups}};
}

std::vector<Problem> backward_problems(const ConvShape& s) {
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

}  // namespace taeda::cpu
