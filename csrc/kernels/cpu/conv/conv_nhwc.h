// Convolution with channels side by side: the input is copied so that all channels of a place are
// neighbours, with its padding; then what a row of the kernel sees at a place is one stretch of
// memory, and outputs lie across the registers. Steps, dilation and short rows cost nothing.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// About how long each takes, in multiplications of a kernel that waits for nothing; infinite where
// this is no way at all.
template <class T> double last_forward_cost(const ConvShape& s);
template <class T> double last_grad_input_cost(const ConvShape& s);
template <class T> double last_grad_weight_cost(const ConvShape& s);

template <class T>
void last_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> void last_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
template <class T> void last_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);

}  // namespace taeda::cpu
