#include "kernels/cpu/conv/geometry.h"

namespace taeda::cpu {
namespace {

// A dimension of three in a shape that may have fewer: -1 where it has none.
int dimension(const ConvShape& s, int d) { return std::max(-1, d - (3 - s.spatial)); }

Axis unit_axis() {
  Axis a{1, 1, 1};
  a.taps.push_back({0, 0});
  return a;
}

Axis forward_axis(const ConvShape& s, int d) {
  const int from = dimension(s, d);
  if (from < 0) return unit_axis();
  Axis a{s.in[from], s.out[from], s.stride[from]};
  for (int64_t k = 0; k < s.kernel[from]; ++k)
    a.taps.push_back({k, k * s.dilation[from] - s.padding[from]});
  return a;
}

// The inputs r, r + stride, ...
Axis backward_axis(const ConvShape& s, int d, int64_t r) {
  const int from = dimension(s, d);
  if (from < 0) return unit_axis();
  const int64_t stride = s.stride[from];
  Axis a{s.out[from], r < s.in[from] ? ceil_div(s.in[from] - r, stride) : 0, 1, r, stride};
  for (int64_t k = 0; k < s.kernel[from]; ++k) {
    const int64_t distance = r + s.padding[from] - k * s.dilation[from];
    if (distance % stride == 0) a.taps.push_back({k, distance / stride});
  }
  return a;
}

}  // namespace

simd::Window window_of(const ConvShape& s) {
  simd::Window w;
  for (int d = 0; d < 3; ++d) {
    const int from = dimension(s, d);
    const bool used = from >= 0;
    w.in[d] = used ? s.in[from] : 1;
    w.kernel[d] = used ? s.kernel[from] : 1;
    w.out[d] = used ? s.out[from] : 1;
    w.stride[d] = used ? s.stride[from] : 1;
    w.padding[d] = used ? s.padding[from] : 0;
    w.dilation[d] = used ? s.dilation[from] : 1;
  }
  return w;
}

Problem forward_problem(const ConvShape& s) {
  return {forward_axis(s, 0), forward_axis(s, 1), forward_axis(s, 2), s.in_channels / s.groups};
}

void each_remainder(const ConvShape& s, const std::function<void(const Problem&)>& f) {
  const auto stride = [&](int d) {
    const int from = dimension(s, d);
    return from < 0 ? 1 : std::min(s.stride[from], s.in[from]);
  };
  for (int64_t d = 0; d < stride(0); ++d) {
    for (int64_t h = 0; h < stride(1); ++h) {
      for (int64_t w = 0; w < stride(2); ++w)
        f({backward_axis(s, 0, d), backward_axis(s, 1, h), backward_axis(s, 2, w),
           s.out_channels / s.groups});
    }
  }
}

}  // namespace taeda::cpu
