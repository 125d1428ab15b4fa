// Values of images at given points, and the gradients of that.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

enum class GridSampling { Linear, Nearest, Cubic };
enum class GridOutside { Zeros, Border, Reflection };

struct GridSampler {
  int spatial;                       // 2, or 3 where the sampling is not cubic
  int64_t in[3];                     // of one image; their product is less than 2^31
  int64_t images, channels, points;  // the latter of each image
  GridSampling how;
  GridOutside outside;
  bool corners;  // -1 and 1 are the centres of the outermost elements, not their edges
  bool planes;   // x and y have channels before their further dimensions, not behind them
};

template <class T> struct GridSampleKernels {  // T: float, double
  // x (images, in..., channels), grid (images, points, spatial) with the fastest dimension first,
  // y (images, points, channels).
  KernelFn<void(const GridSampler& s, const T* x, const T* grid, T* y)> sample;
  // The gradients of x and of the grid.
  KernelFn<void(const GridSampler& s, const T* gy, const T* grid, T* gx)> input_gradient;
  KernelFn<void(const GridSampler& s, const T* gy, const T* x, const T* grid, T* ggrid)>
      grid_gradient;
  // What `planes` is best for contiguous tensors, in sampling or in the gradients.
  KernelFn<bool(const GridSampler& s, bool gradient)> prefers_planes;

  static const GridSampleKernels cpu;
};

}  // namespace taeda
