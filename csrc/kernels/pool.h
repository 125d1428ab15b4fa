// Pooling over one, two or three spatial dimensions of contiguous memory, and its gradients.
//
// x is (planes, in...), y (planes, out...); batch and channels are both planes here.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

struct PoolShape {
  int64_t planes;
  int spatial;  // 1, 2 or 3; the arrays' further elements are not read
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  // Window i along a dimension reaches from floor(i * in / out) to ceil((i + 1) * in / out); kernel
  // and what follows it are not read.
  bool adaptive;
  // The last dimension is of the channels, whose windows are single elements: `index` counts the
  // positions along the others.
  bool channels_last = false;
};

// What a window's sum is divided by: `divisor` if it is not 0; else the elements of the window, of
// its padding too where `count_padding` says so.
struct PoolAverage {
  bool count_padding;
  int64_t divisor;
};

template <class T> struct PoolKernels {  // T: float, double; max_pool and avg_pool also int64_t
  // `index` receives where in its plane each maximum was found: the first one, or the last NaN.
  KernelFn<void(const PoolShape& s, const T* x, T* y, int64_t* index)> max_pool;
  // Windows of `kernel` elements that begin `(in - kernel) / (out - 1)` apart on average: `samples`
  // (planes, spatial) shift those of each plane; in two dimensions the first is for the columns.
  // False, with y unfinished, where a window would leave its plane, which none does for samples
  // within [0, 1]. Padding, stride, dilation are not read.
  KernelFn<bool(const PoolShape& s, const T* x, const T* samples, T* y, int64_t* index)>
      fractional_max_pool;
  // gx = 0, then gx[index] += gy for all maxima, in each of the channels, which follow one another
  // in memory. `in` and `out` are positions of a whole plane. False where an index lies outside of
  // its plane; gx is then unfinished.
  KernelFn<bool(int64_t planes, int64_t in, int64_t out, int64_t channels, const T* gy,
                const int64_t* index, T* gx)>
      scatter;

  KernelFn<void(const PoolShape& s, PoolAverage average, const T* x, T* y)> avg_pool;
  KernelFn<void(const PoolShape& s, PoolAverage average, const T* gy, T* gx)> avg_pool_backward;

  static const PoolKernels cpu;
};

}  // namespace taeda
