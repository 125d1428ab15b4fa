// Convolution by Winograd's minimal filtering: tiles of outputs of a 3x3 kernel take a quarter to
// half of the multiplications that the definition does, a little more with stride 2, in float32.
// The price is in accuracy, a few times the rounding error of the plain sum.
#pragma once

#include "kernels/cpu/conv/algorithm.h"

namespace taeda::cpu {

bool supports_winograd(const ConvShape& s);
ConvWork winograd_work(const ConvShape& s, ConvPass pass);

// Each returns false where a result is not finite, since an infinity or NaN reaches outputs that do
// not read it; what has been written is then of no use.
bool winograd_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                      float* y);
bool winograd_grad_input(const ConvShape& s, const float* gy, const float* w, const float*,
                         float* gx);
bool winograd_grad_weight(const ConvShape& s, const float* x, const float* gy, const float*,
                          float* gw);

}  // namespace taeda::cpu
