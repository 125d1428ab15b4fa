#include "kernels/cpu/conv_phases.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/winograd.h"

namespace taeda::cpu {
namespace {

constexpr double kMoved = 24;   // multiplications that moving an element there or back costs
constexpr double kPlain = 1.1;  // what a multiplication of the plain sum costs

// The convolution of the phases. Sizes are multiples of the dilation, so that all are alike.
ConvShape phase_shape(const ConvShape& s) {
  ConvShape t = s;
  t.batch = s.batch * s.dilation[0] * s.dilation[1];
  for (int d = 0; d < 2; ++d) {
    t.in[d] = s.in[d] / s.dilation[d];
    t.out[d] = s.out[d] / s.dilation[d];
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
    if (s.in[d] % step != 0 || s.padding[d] % step != 0) return false;
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

// (batch, channels, size) to (batch, phase, channels, size of a phase), and back.
void gather_phases(const ConvShape& s, int64_t channels, const int64_t (&size)[3], const float* x,
                   float* phases) {
  const int64_t down = s.dilation[0], across = s.dilation[1], width = size[1] / across;
  const int64_t area = size[0] * size[1], part = area / (down * across);
  parallel_for(
      s.batch * channels, std::max<int64_t>(1, (1 << 14) / area), [&](auto begin, auto end) {
        for (int64_t i = begin; i < end; ++i) {
          float* to = phases + (i / channels * down * across * channels + i % channels) * part;
          for (int64_t h = 0; h < size[0]; ++h) {
            for (int64_t c = 0; c < across; ++c) {
              const float* from = x + i * area + h * size[1] + c;
              float* row = to + (h % down * across + c) * channels * part + h / down * width;
              for (int64_t j = 0; j < width; ++j) row[j] = from[j * across];
            }
          }
        }
      });
}
void spread_phases(const ConvShape& s, int64_t channels, const int64_t (&size)[3],
                   const float* phases, float* y) {
  const int64_t down = s.dilation[0], across = s.dilation[1], width = size[1] / across;
  const int64_t area = size[0] * size[1], part = area / (down * across);
  parallel_for(s.batch * channels, std::max<int64_t>(1, (1 << 14) / area),
               [&](auto begin, auto end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const float* from =
                       phases + (i / channels * down * across * channels + i % channels) * part;
                   for (int64_t h = 0; h < size[0]; ++h) {
                     for (int64_t c = 0; c < across; ++c) {
                       float* to = y + i * area + h * size[1] + c;
                       const float* row =
                           from + (h % down * across + c) * channels * part + h / down * width;
                       for (int64_t j = 0; j < width; ++j) to[j * across] = row[j];
                     }
                   }
                 }
               });
}

int64_t x_size(const ConvShape& s) { return s.batch * s.in_channels * s.in[0] * s.in[1]; }
int64_t y_size(const ConvShape& s) { return s.batch * s.out_channels * s.out[0] * s.out[1]; }

}  // namespace

bool phases_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                    float* y) {
  if (!fits_phases(s)) return false;
  Scratch<float> seen(x_size(s)), result(y_size(s));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  conv_forward(phase_shape(s), seen.data(), w, bias, result.data());
  spread_phases(s, s.out_channels, s.out, result.data(), y);
  return true;
}

bool phases_grad_input(const ConvShape& s, const float* gy, const float* w, float* gx) {
  if (!fits_phases(s)) return false;
  Scratch<float> grads(y_size(s)), result(x_size(s));
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  conv_grad_input(phase_shape(s), grads.data(), w, result.data());
  spread_phases(s, s.in_channels, s.in, result.data(), gx);
  return true;
}

bool phases_grad_weight(const ConvShape& s, const float* x, const float* gy, float* gw) {
  if (!fits_phases(s)) return false;
  Scratch<float> seen(x_size(s)), grads(y_size(s));
  gather_phases(s, s.in_channels, s.in, x, seen.data());
  gather_phases(s, s.out_channels, s.out, gy, grads.data());
  conv_grad_weight(phase_shape(s), seen.data(), grads.data(), gw);
  return true;
}

}  // namespace taeda::cpu
