// How a reduction is planned: dimensions are sorted and joined, then memory is read in the better
// of two ways: along rows, where a reduced dimension is contiguous, or over blocks of columns,
// where a kept one is. Work is cut by size alone, partial results are combined in order: the same
// bits for any number of threads.
#pragma once

#include "kernels/cpu/reduce/simd/reduce.h"
#include "kernels/reduce.h"

namespace taeda::cpu {

using simd::Moments;
using simd::ValueIndex;

// Receives finished accumulators: `count` of them, for the elements first, first + stride, ... of
// the result, which is contiguous in the kept dimensions.
struct ReduceFinish {
  void (*call)(void* context, const void* acc, int64_t count, int64_t first, int64_t stride);
  void* context;
};
void reduce(ReduceOp op, const ReduceInput& x, ReduceFinish finish);

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);
void scan_extreme(bool largest, DType dtype, const ScanShape& s, const void* x, void* values,
                  int64_t* indices);

}  // namespace taeda::cpu
