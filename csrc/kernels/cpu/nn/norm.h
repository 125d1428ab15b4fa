// Normalisation over rows (layer, group, instance, RMS) and over channels (batch). Contiguous
// memory; float or double.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace taeda::cpu {

// Each row of channels * spatial elements is normalised by itself. Element (row, c, s) has the
// affine parameters of channel (row % groups) * channels + c. Layer norm: groups = spatial = 1.
// Null weight or bias: 1 or 0.
struct RowNorm {
  int64_t rows, groups, channels, spatial;
  double eps;
  bool centered;  // false: RMS norm, whose mean counts as 0
};

struct BatchNorm {
  int64_t batch, channels, spatial;
  double eps;
};

template <class T> struct Norms {
  // x, y and their gradients are of `dtype`: that of T, or for float one of half precision.
  static void row_norm(const RowNorm& s, DType dtype, const void* x, const T* weight, const T* bias,
                       void* y, T* mean, T* rstd);
  // gw and gb, both or none, have groups * channels elements.
  static void row_norm_backward(const RowNorm& s, DType dtype, const void* g, const void* x,
                                const T* mean, const T* rstd, const T* weight, void* gx, T* gw,
                                T* gb);

  // mean, biased variance and 1 / sqrt(variance + eps) of each channel over (batch, spatial), and x
  // normalised by them.
  static void batch_norm_training(const BatchNorm& s, const T* x, const T* weight, const T* bias,
                                  T* mean, T* var, T* invstd, T* y);
  // x normalised by moments that are given.
  static void batch_norm(const BatchNorm& s, const T* x, const T* mean, const T* invstd,
                         const T* weight, const T* bias, T* y);
  // `training`: mean and invstd came from x itself, and gradients flow through them.
  static void batch_norm_backward(const BatchNorm& s, bool training, const T* g, const T* x,
                                  const T* mean, const T* invstd, const T* weight, T* gx, T* gw,
                                  T* gb);
};

}  // namespace taeda::cpu
