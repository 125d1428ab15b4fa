// Values of images at given points, and the gradients of that. Channels lie side by side.
#pragma once

#include <cstdint>

namespace taeda::cpu {

enum class Sampling { Linear, Nearest, Cubic };
enum class Outside { Zeros, Border, Reflection };

struct Sampler {
  int spatial;                       // 2, or 3 where the sampling is not cubic
  int64_t in[3];                     // of one image; their product is less than 2^31
  int64_t images, channels, points;  // the latter of each image
  Sampling how;
  Outside outside;
  bool corners;  // -1 and 1 are the centres of the outermost elements, not their edges
};

template <class T> struct GridSample {
  // x (images, in..., channels), grid (images, points, spatial) with the fastest dimension first,
  // y (images, points, channels). T: float or double.
  static void grid_sample(const Sampler& s, const T* x, const T* grid, T* y);
  // The same for x (images, channels, in...) and y (images, channels, points), of images that a
  // cache of a core's own holds.
  static bool is_near(const Sampler& s);
  static void grid_sample_near(const Sampler& s, const T* x, const T* grid, T* y);
  // The gradients of x and of the grid.
  static void grid_sample_input(const Sampler& s, const T* gy, const T* grid, T* gx);
  static void grid_sample_grid(const Sampler& s, const T* gy, const T* x, const T* grid, T* ggrid);
};

}  // namespace taeda::cpu
