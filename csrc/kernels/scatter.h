// Reading and writing by index: at offsets into a strided array, by rows, and where the indices
// along one dimension come from an index of the same rank (gather, scatter).
#pragma once

#include "base/dims.h"
#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// A strided array seen as (outer..., count, run), of which the middle dimension is read at
// `offsets`, beside a flat one of the same shape. Strides are in elements.
struct IndexLayout {
  Dims outer, outer_strides, outer_flat;  // sizes; strides in the indexed and in the flat array
  const int64_t* offsets = nullptr;       // in the indexed array; none is negative
  int64_t count = 0;                      // how many
  int64_t count_flat = 0;                 // the middle dimension's stride in the flat array
  int64_t run = 1, run_stride = 1, run_flat = 1;
};

enum class ScatterMode : uint8_t { Copy, Add, Multiply, Max, Min };

// One call's geometry. `other` is the dense side: the result of gather, the source of scatter.
struct ScatterLayout {
  DimsRef sizes;  // of the index; all four are host memory
  DimsRef index_strides, target_strides, other_strides;
  size_t dim;
  const int64_t* index;
  int64_t size;  // of the target along dim
};

struct ScatterKernels {
  // flat[...] = indexed[...]
  KernelFn<void(void* flat, const void* indexed, const IndexLayout& l, DType dtype)> read;
  // indexed[...] = flat[...] in order: of several writes to one element the last one stays
  KernelFn<void(void* indexed, const void* flat, const IndexLayout& l, DType dtype)> write;
  // indexed[...] += flat[...], in order
  KernelFn<void(void* indexed, const void* flat, const IndexLayout& l, DType dtype)> accumulate;
  // Row i of out is row index[i] of the table; rows have `row_bytes` > 0 bytes.
  KernelFn<void(int64_t count, int64_t row_bytes, const void* table, const int64_t* index,
                void* out)>
      take_rows;

  // Returns false, with `out` written in part, if an index is out of bounds.
  KernelFn<bool(void* out, const void* x, const ScatterLayout& l, DType dtype)> gather;
  // As gather; entries that meet at one element are applied in row-major order of the index along
  // `dim`.
  KernelFn<bool(void* target, const void* src, const ScatterLayout& l, DType dtype,
                ScatterMode mode)>
      scatter;

  static const ScatterKernels cpu;
};

}  // namespace taeda
