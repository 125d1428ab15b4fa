#include "kernels/cpu/conv/conv_strided.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/winograd.h"

namespace taeda::cpu {
namespace {

constexpr double kMoved = 24;   // multiplications that moving an element there or back costs
constexpr double kPlain = 1.1;  // what a multiplication of the plain sum costs

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

bool fits_phases(const ConvShape& s) {
  if (s.spatial != 2 || (s.dilation[0] == 1 && s.dilation[1] == 1)) return false;
  double read = 1;  // windows' elements that are not padding
  for (int d = 0; d < 2; ++d) {
    const int64_t step = s.dilation[d];
    if (s.stride[d] != 1 || s.kernel[d] != 3 || s.padding[d] > step * 2) return false;
    if (s.padding[d] % step != 0) return false;
    int64_t inside = 0;
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t start = k * step - s.padding[d];
      inside +=
          std::max<int64_t>(0, std::min(s.out[d], s.in[d] - start) - std::max<int64_t>(0, -start));
    }
    read *= static_cast<double>(inside);
  }
  const ConvShape t = phase_shape(s);
  if (!fits_winograd<float>(t)) return false;
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double moved = real(s.batch) * (real(s.in_channels) * real(s.in[0] * s.in[1]) +
                                        real(s.out_channels) * real(s.out[0] * s.out[1]));
  const double plain = real(s.batch) * read * real(s.in_channels) * real(s.out_channels / s.groups);
  return winograd_cost(t) + kMoved * moved < kPlain * plain;
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

}  // namespace

bool phases_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                    float* y) {
  if (!fits_phases(s)) return false;
  Scratch<float> seen(x_size(phase_shape(s))), result(y_size(phase_shape(s)));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  conv_forward(phase_shape(s), seen.data(), w, bias, result.data());
  spread_phases(s, s.out_channels, s.out, result.data(), y);
  return true;
}

bool phases_grad_input(const ConvShape& s, const float* gy, const float* w, float* gx) {
  if (!fits_phases(s)) return false;
  Scratch<float> grads(y_size(phase_shape(s))), result(x_size(phase_shape(s)));
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  conv_grad_input(phase_shape(s), grads.data(), w, result.data());
  spread_phases(s, s.in_channels, s.in, result.data(), gx);
  return true;
}

bool phases_grad_weight(const ConvShape& s, const float* x, const float* gy, float* gw) {
  if (!fits_phases(s)) return false;
  Scratch<float> seen(x_size(phase_shape(s))), grads(y_size(phase_shape(s)));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  conv_grad_weight(phase_shape(s), seen.data(), grads.data(), gw);
  // The zeros that fill up shorter phases of the gradients may have met an infinity.
  return (s.out[0] % s.dilation[0] == 0 && s.out[1] % s.dilation[1] == 0) ||
         std::all_of(gw, gw + s.out_channels * (s.in_channels / s.groups) * 9,
                     [](float v) { return std::isfinite(v); });
}

}  // namespace taeda::cpu
