// What the algorithms share of the geometry of a convolution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/conv_taps.h"
#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

using namespace conv_taps;

using Sizes = const int64_t (&)[3];
inline int64_t volume(Sizes sizes) { return sizes[0] * sizes[1] * sizes[2]; }

}  // namespace taeda::cpu
