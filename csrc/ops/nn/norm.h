// What the normalisations of rows (norm.cpp) and of channels (batch_norm.cpp) share.
#pragma once

#include "autograd/backward.h"
#include "kernels/norm.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"

namespace taeda {

inline DType compute_of(const Tensor& x, const char* what) {
  return compute_dtype(x.dtype(), what);
}

// (1, C, 1, ...): how a channel vector broadcasts.
inline Dims channel_dims(const Dims& sizes) {
  Dims d(sizes.size(), 1);
  d[1] = sizes[1];
  return d;
}

// The input gradient composed of ops, for higher-order derivatives. x and gy: (rows, n); returns
// gx.
Tensor normalized_gradient(const Tensor& x, const Tensor& gy, double eps, bool centered);
Tensor normalized_rows(const Tensor& x, double eps, bool centered);

inline constexpr uint32_t kStats = 0b110;  // mean and rstd are not differentiable

}  // namespace taeda
