// The geometry of x[i, :, j].
#pragma once

#include "kernels/scatter.h"
#include "ops/index/util.h"

namespace taeda {

// Indices for a kernel: for each dimension of (sizes, strides) an int64 tensor, or an undefined
// one.
struct Indexed {
  Dims sizes, strides;
  TensorList index;
  Device device;
};

Indexed resolve(const Tensor& x, const TensorList& indices);

struct IndexPlan {
  IndexLayout layout;
  Tensor offsets;  // owns the layout's offsets
  Dims result;     // shape of the gathered side
};

// `compute` is false for meta tensors: then only the shape is worked out.
IndexPlan plan_of(const Indexed& r, bool compute);

}  // namespace taeda
