// What each place of a grid reads of an image.
#pragma once

#include "kernels/cpu/grid_sample.h"

namespace taeda::cpu::simd {

// The taps of all points of one image: those of point p are first[p] to first[p + 1]. `slopes`, if
// any, gets the derivatives of each tap's weight, in the order of the grid's coordinates. Returns
// how many taps there are.
template <class T>
using GridTaps = int64_t (*)(const Sampler& s, const T* grid, int64_t* first, int32_t* place,
                             T* weight, T* slopes);

struct GridKernels {
  GridTaps<float> f32;
  GridTaps<double> f64;
};

namespace v2 {
extern const GridKernels grid_kernels;
}
namespace v3 {
extern const GridKernels grid_kernels;
}
namespace v4 {
extern const GridKernels grid_kernels;
}
namespace base {
extern const GridKernels grid_kernels;
}

}  // namespace taeda::cpu::simd
