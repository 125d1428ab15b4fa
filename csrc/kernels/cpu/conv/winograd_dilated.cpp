// Dilated 3x3 convolution by Winograd's method: the pixels whose indices have the same remainder
// modulo the dilation (a phase) are an image of their own, which the kernel sees without dilation.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/geometry.h"
#include "kernels/cpu/conv/winograd.h"

namespace taeda::cpu {
namespace {

// The convolution of the phases, which are all as large as the largest: shorter ones end in zeros.
ConvShape phase_shape(const ConvShape& s) {
  ConvShape t = s;
  t.batch = s.batch * s.dilation[0] * s.dilation[1];
  for (int d = 0; d < 2; ++d) {
    t.in[d] = ceil_div(s.in[d], s.dilation[d]);
    t.out[d] = ceil_div(s.out[d], s.dilation[d]);
    t.padding[d] = s.padding[d] / s.dilation[d];
    t.dilation[d] = 1;
  }
  return t;
}

bool supports(const ConvShape& s) {
  if (s.spatial != 2 || (s.dilation[0] == 1 && s.dilation[1] == 1)) return false;
  for (int d = 0; d < 2; ++d) {
    const int64_t step = s.dilation[d];
    if (s.stride[d] != 1 || s.padding[d] > step * 2 || s.padding[d] % step != 0) return false;
  }
  return supports_winograd(phase_shape(s));
}

template <ConvPass Pass> ConvWork work(const ConvShape& s) {
  ConvWork w = winograd_work(phase_shape(s), Pass);
  w.calls = real(s.batch) * (real(s.in_channels) * real(s.in[0] * s.in[1]) +
                             real(s.out_channels) * real(s.out[0] * s.out[1]));
  return w;
}

// Calls f(plane, row of it, its columns' remainder, row of the phase, columns of the phase) for all
// of (batch, channels) planes; rows that there are not are -1.
template <class F>
void each_row(const ConvShape& s, int64_t channels, const int64_t (&size)[3], F&& f) {
  const int64_t down = s.dilation[0], across = s.dilation[1];
  const int64_t height = ceil_div(size[0], down), width = ceil_div(size[1], across);
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / (size[0] * size[1]));
  parallel_for(s.batch * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t phase = 0; phase < down * across; ++phase) {
        const int64_t row =
            ((i / channels * down * across + phase) * channels + i % channels) * height;
        for (int64_t h = 0; h < height; ++h) {
          const int64_t at = phase / across + h * down;
          f(i, at < size[0] ? at : -1, phase % across, (row + h) * width, width);
        }
      }
    }
  });
}

// (batch, channels, size) to (batch, phase, channels, size of a phase), and back.
void gather_phases(const ConvShape& s, int64_t channels, const int64_t (&size)[3], const float* x,
                   float* phases) {
  const int64_t step = s.dilation[1];
  each_row(
      s, channels, size, [&](int64_t plane, int64_t row, int64_t first, int64_t at, int64_t width) {
        const int64_t seen = row < 0 ? 0 : std::max<int64_t>(0, ceil_div(size[1] - first, step));
        const float* from = x + (plane * size[0] + std::max<int64_t>(row, 0)) * size[1] + first;
        float* to = phases + at;
        for (int64_t j = 0; j < seen; ++j) to[j] = from[j * step];
        std::fill(to + seen, to + width, 0.0f);
      });
}
void spread_phases(const ConvShape& s, int64_t channels, const int64_t (&size)[3],
                   const float* phases, float* y) {
  const int64_t step = s.dilation[1];
  each_row(s, channels, size, [&](int64_t plane, int64_t row, int64_t first, int64_t at, int64_t) {
    float* to = y + (plane * size[0] + row) * size[1] + first;
    for (int64_t j = 0; row >= 0 && first + j * step < size[1]; ++j) to[j * step] = phases[at + j];
  });
}

int64_t x_size(const ConvShape& t) { return t.batch * t.in_channels * t.in[0] * t.in[1]; }
int64_t y_size(const ConvShape& t) { return t.batch * t.out_channels * t.out[0] * t.out[1]; }

bool forward(const ConvShape& s, const float* x, const float* w, const float* bias, float* y) {
  const ConvShape t = phase_shape(s);
  Scratch<float> seen(x_size(t)), result(y_size(t));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  if (!winograd_forward(t, seen.data(), w, bias, result.data())) return false;
  spread_phases(s, s.out_channels, s.out, result.data(), y);
  return true;
}

bool grad_input(const ConvShape& s, const float* gy, const float* w, const float*, float* gx) {
  const ConvShape t = phase_shape(s);
  Scratch<float> grads(y_size(t)), result(x_size(t));
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  if (!winograd_grad_input(t, grads.data(), w, nullptr, result.data())) return false;
  spread_phases(s, s.in_channels, s.in, result.data(), gx);
  return true;
}

bool grad_weight(const ConvShape& s, const float* x, const float* gy, const float*, float* gw) {
  const ConvShape t = phase_shape(s);
  Scratch<float> seen(x_size(t)), grads(y_size(t));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  return winograd_grad_weight(t, seen.data(), grads.data(), nullptr, gw);
}

}  // namespace

extern constinit const ConvAlgorithms<float> winograd_dilated_f32 = {
    {{"winograd_dilated", supports, work<ConvPass::forward>, forward},
     {"winograd_dilated", supports, work<ConvPass::grad_input>, grad_input},
     {"winograd_dilated", supports, work<ConvPass::grad_weight>, grad_weight}}};

}  // namespace taeda::cpu
