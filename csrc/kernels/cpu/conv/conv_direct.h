// Convolution without a matrix of windows: every tap of the kernel is a shifted view of the padded
// input, so a row of outputs is a sum of weights times views, taken in registers.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// Whether this way is the fast one: not for single taps (a plain product), kernels a channel of
// their own each, or rows so short that most of a register would be padding.
bool fits_direct(const ConvShape& s);

// About how long each takes, in multiplications of a kernel that waits for nothing.
template <class T> double direct_forward_cost(const ConvShape& s);
template <class T> double direct_grad_input_cost(const ConvShape& s);
template <class T> double direct_grad_weight_cost(const ConvShape& s);

template <class T>
void direct_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> void direct_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
// gw holds zeros.
template <class T> void direct_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);

}  // namespace taeda::cpu
