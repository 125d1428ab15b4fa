// Convolution by Winograd's minimal filtering: tiles of outputs of a 3x3 kernel take a quarter to
// half of the multiplications that the definition does, a little more with stride 2, in float32.
// The price is in accuracy, a few times the rounding error of the plain sum.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// Whether this way is possible, and the fast one, for the convolution and both its gradients.
template <class T> bool fits_winograd(const ConvShape& s);
// How long it then takes, in multiplications of the direct way.
double winograd_cost(const ConvShape& s);

// Each returns false where a result is not finite, since an infinity or NaN reaches outputs that do
// not read it; what has been written is then of no use.
bool winograd_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                      float* y);
bool winograd_grad_input(const ConvShape& s, const float* gy, const float* w, float* gx);
// Adds to gw.
bool winograd_grad_weight(const ConvShape& s, const float* x, const float* gy, float* gw);

}  // namespace taeda::cpu
