// Reading a block of elements by a list of indices for each of its dimensions, as padding does.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// Planes of a contiguous array; element (i, j, ...) of a plane of the result comes from element
// (indices[0][i], indices[1][j], ...) of the same plane of the source.
struct IndexedBlock {
  int64_t planes = 1;
  int dims = 0;                    // one at least
  int64_t source[64], result[64];  // sizes of a plane of each, none 0
  const int64_t* indices[64];
};

struct PadKernels {
  KernelFn<void(void* out, const void* x, const IndexedBlock& b, DType dtype)> read_block;
  // gx = 0, then g is added to where its elements come from, in order.
  KernelFn<void(void* gx, const void* g, const IndexedBlock& b, DType dtype)> accumulate_block;

  static const PadKernels cpu;
};

}  // namespace taeda
