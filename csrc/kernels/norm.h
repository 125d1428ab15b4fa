// Normalisation over rows (layer, group, instance, RMS) and over channels (batch). Contiguous
// memory.
#pragma once

#include <cstdint>

#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"
#include "kernels/kernels.h"

namespace taeda {

// Each row of channels * spatial elements is normalised by itself. Element (row, c, s) has the
// affine parameters of channel (row % groups) * channels + c. Layer norm: groups = spatial = 1.
// Null weight or bias: 1 or 0.
struct RowNormShape {
  int64_t rows, groups, channels, spatial;
  double eps;
  bool centered;  // false: RMS norm, whose mean counts as 0
  // Images (spatial, groups * channels) instead, for kernels that say so; a row is a group of one.
  bool channels_last = false;
};

struct BatchNormShape {
  int64_t batch, channels, spatial;
  double eps;
};

template <class T> struct NormKernels {  // T: float, double
  // x, y and their gradients are of `dtype`: that of T, or for float one of half precision.
  KernelFn<void(const RowNormShape& s, DType dtype, const void* x, const T* weight, const T* bias,
                void* y, T* mean, T* rstd)>
      row_norm;
  // gw and gb, both or none, have groups * channels elements.
  KernelFn<void(const RowNormShape& s, DType dtype, const void* g, const void* x, const T* mean,
                const T* rstd, const T* weight, void* gx, T* gw, T* gb)>
      row_norm_backward;
  bool takes_channels_last = false;

  static const NormKernels cpu;
};

// S, what x, y and their gradients are of: float, double. For Half and BFloat16 a device may have
// them; ops convert where it has none, as for the CPU.
template <class S> struct BatchNormKernels {
  using T = std::conditional_t<std::is_floating_point_v<S>, S, float>;
  // mean, biased variance and 1 / sqrt(variance + eps) of each channel over (batch, spatial), and x
  // normalised by them.
  KernelFn<void(const BatchNormShape& s, const S* x, const T* weight, const T* bias, T* mean,
                T* var, T* invstd, S* y)>
      batch_norm_training;
  // running = (1 - momentum) * running + momentum * factor * value, for each channel.
  KernelFn<void(int64_t channels, double momentum, double factor, const T* value, T* running)>
      update_running;
  // x normalised by moments that are given; invstd as above.
  KernelFn<void(const BatchNormShape& s, const S* x, const T* mean, const T* var, const T* weight,
                const T* bias, T* invstd, S* y)>
      batch_norm;
  // `training`: mean and invstd came from x itself, and gradients flow through them.
  KernelFn<void(const BatchNormShape& s, bool training, const S* g, const S* x, const T* mean,
                const T* invstd, const T* weight, S* gx, T* gw, T* gb)>
      batch_norm_backward;

  static const BatchNormKernels cpu;
};
template <> const BatchNormKernels<Half> BatchNormKernels<Half>::cpu;  // none
template <> const BatchNormKernels<BFloat16> BatchNormKernels<BFloat16>::cpu;

}  // namespace taeda
