// Dilated 3x3 convolution by Winograd's method: the pixels that lie a multiple of the dilation
// apart are images of their own, which the kernel sees without dilation.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// Each returns false where another way is faster; and the last one, with what it has written of no
// use, where a result is not finite.
bool phases_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                    float* y);
bool phases_grad_input(const ConvShape& s, const float* gy, const float* w, float* gx);
bool phases_grad_weight(const ConvShape& s, const float* x, const float* gy, float* gw);

}  // namespace taeda::cpu
