// Reductions over any set of dimensions of a strided array, and scans along one.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kernels/reduce_op.h"

namespace taeda {

struct ReduceInput {
  const void* data;
  DType dtype;             // real, of those that kernels compute with
  DimsRef sizes, strides;  // in elements; host memory
  uint64_t reduced;        // bit d: dimension d is reduced
};

// Where results go, contiguous in the kept dimensions.
struct ReduceResults {
  DType dtype;             // of `values` and of the means
  void* values;            // null: an ArgMax or ArgMin of which only the index is wanted
  void* second = nullptr;  // Moments: the means, or null; ArgMax, ArgMin: the index, int64
  // Of sums, and of the squared distances that Moments add up: divided by `divisor`, then the
  // `root`-th root.
  double divisor = 1, root = 1;
};

enum class Scan : uint8_t { Sum, Prod, LogSumExp };
struct ScanShape {  // contiguous
  int64_t outer, n, inner;
};

struct ReduceKernels {
  KernelFn<void(ReduceOp op, const ReduceInput& x, const ReduceResults& y)> reduce;
  // y[i] = the product of row i of x (rows, n), contiguous complex numbers.
  KernelFn<void(DType dtype, int64_t rows, int64_t n, const void* x, void* y)> complex_prod;
  // Whether all n elements of two contiguous arrays are equal, as == has it.
  KernelFn<bool(DType dtype, int64_t n, const void* a, const void* b)> all_equal;
  KernelFn<void(Scan what, DType dtype, const ScanShape& s, const void* x, void* y)> scan;
  // Running extremes and the indices (along n) of the latest of them. NaN stays.
  KernelFn<void(bool largest, DType dtype, const ScanShape& s, const void* x, void* values,
                int64_t* indices)>
      scan_extreme;

  static const ReduceKernels cpu;
};

}  // namespace taeda
