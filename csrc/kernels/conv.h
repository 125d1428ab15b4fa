// Convolution over one, two or three spatial dimensions, and its two gradients, on contiguous
// memory, or on channels_last.
//
// x is (batch, in_channels, in...), w (out_channels, in_channels / groups, kernel...), y (batch,
// out_channels, out...). A transposed convolution is the same three kernels in other roles: its
// result is a gradient with respect to the input.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "kernels/kernels.h"

namespace taeda {

// Sizes, steps and taps along three dimensions; of fewer, the first ones are as they are here.
struct ConvWindow {
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};

  bool operator==(const ConvWindow&) const = default;
};
struct ConvShape : ConvWindow {
  int64_t batch, groups, in_channels, out_channels;
  bool channels_last = false;  // of x and y, and of w where the kernels say so

  bool operator==(const ConvShape&) const = default;
};

enum class ConvPass : uint8_t { forward, grad_input, grad_weight };

// T: float, double; on devices also Half, BFloat16, without which halves are computed as floats.
template <class T> struct ConvKernels {
  // `bias` may be null.
  KernelFn<void(const ConvShape& s, const T* x, const T* w, const T* bias, T* y)> forward;
  KernelFn<void(const ConvShape& s, const T* gy, const T* w, T* gx)> grad_input;
  KernelFn<void(const ConvShape& s, const T* x, const T* gy, T* gw)> grad_weight;
  // Whether a shape is computed in channels_last; null: never. Weights are then as x and y are, or
  // contiguous.
  KernelFn<bool(ConvPass pass, const ConvShape& s)> takes_channels_last;
  bool weights_channels_last = false;

  static const ConvKernels cpu;
};
template <> inline const ConvKernels<Half> ConvKernels<Half>::cpu{};
template <> inline const ConvKernels<BFloat16> ConvKernels<BFloat16>::cpu{};

template <class T> struct IntegerConvKernels {
  KernelFn<void(const ConvShape& s, const T* x, const T* w, T* y)> forward;
  KernelFn<void(const ConvShape& s, const T* gy, const T* w, T* gx)> grad_input;

  static const IntegerConvKernels cpu;
};

}  // namespace taeda
