// Convolution over one, two or three spatial dimensions, and its two gradients, on contiguous
// memory.
//
// x is (batch, in_channels, in...), w (out_channels, in_channels / groups, kernel...), y (batch,
// out_channels, out...). A transposed convolution is the same three kernels in other roles: its
// result is a gradient with respect to the input.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct ConvShape {
  int64_t batch, groups, in_channels, out_channels;
  int spatial;  // 1, 2 or 3; the arrays' further elements are not read
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

// T: float or double. `bias` may be null.
template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> void conv_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
template <class T> void conv_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);

// T: the integers.
template <class T> void conv_forward_integer(const ConvShape& s, const T* x, const T* w, T* y);
template <class T> void conv_grad_input_integer(const ConvShape& s, const T* gy, const T* w, T* gx);

}  // namespace taeda::cpu
