// Resizing by weighted sums along one dimension after the other, and the transpose of that.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

// Smooth: over as many inputs as lie below an output, where there are fewer outputs.
enum class Resampling { Nearest, NearestExact, Linear, Cubic, LinearSmooth, CubicSmooth };

// x (outer, in..., inner) to y (outer, out..., inner). At least one input along each dimension,
// less than 2^31.
struct ResampleShape {
  int64_t outer, inner;
  int spatial;  // dimensions that are resized, 1 to 3; the arrays' further elements are not read
  int64_t in[3], out[3];
  double step[3];  // how far apart two neighbouring outputs lie in the input
  Resampling how;
  bool corners;  // the first and the last outputs lie on the first and the last input
};

template <class T> struct ResampleKernels {  // T: float, double
  KernelFn<void(const ResampleShape& s, const T* x, T* y)> resample;
  // The gradient: gy (outer, out..., inner) to gx (outer, in..., inner).
  KernelFn<void(const ResampleShape& s, const T* gy, T* gx)> backward;

  static const ResampleKernels cpu;
};

}  // namespace taeda
