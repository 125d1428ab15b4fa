// Windows of planes laid out one in each column, and the sums of such columns put back.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// Of (planes, in) with windows at out[0] x out[1] places. Columns are (planes, kernel, out).
struct FoldShape {
  int64_t planes;
  int64_t in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];
};

struct FoldKernels {
  // Zeros where a window hangs over an edge.
  KernelFn<void(const FoldShape& s, const void* x, void* columns, DType dtype)> to_columns;
  // Every element of x: the sum of those of the columns that the above would take from it.
  KernelFn<void(const FoldShape& s, const void* columns, void* x, DType dtype)> from_columns;

  static const FoldKernels cpu;
};

}  // namespace taeda
