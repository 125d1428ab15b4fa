// What all functions of convolution check.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// Equal dtypes and devices of input, weight and bias.
void check_conv_types(const char* what, const Tensor& x, const Tensor& w, const Tensor& bias);
// Stride, padding, dilation and groups.
void check_conv_window(const char* what, const Dims& stride, const Dims& padding,
                       const Dims& dilation, int64_t groups);

}  // namespace taeda
