// Interleaves contiguous pieces: row i of the result is row i of every piece, one after the other.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"

namespace taeda {

struct JoinPiece {
  const void* data;
  size_t row_bytes;
};

struct JoinKernels {
  // The list of pieces is host memory.
  KernelFn<void(void* out, std::span<const JoinPiece> pieces, int64_t rows)> join_rows;

  static const JoinKernels cpu;
};

}  // namespace taeda
