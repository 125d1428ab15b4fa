// Convolution with images side by side, for images so small that padding, or weights made ready
// for a few tiles, would cost the other ways more.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// Each does nothing and returns false where another way is faster.
template <class T>
bool across_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> bool across_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
// other: the cost of another way.
template <class T>
bool across_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw, double other);

// And for a kernel of each channel's own, with channels side by side.
template <class T>
bool channels_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> bool channels_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
// strips: whether the other way is by strips.
template <class T>
bool channels_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw, bool strips);

}  // namespace taeda::cpu
