// gather and scatter: the indices along one dimension come from an index of the same rank.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

enum class ScatterMode { Copy, Add, Multiply, Max, Min };

// One call's geometry. `other` is the dense side: the result of gather, the source of scatter.
struct ScatterLayout {
  DimsRef sizes;  // of the index
  DimsRef index_strides, target_strides, other_strides;
  size_t dim;
  const int64_t* index;
  int64_t size;  // of the target along dim
};

// Returns false, with `out` written in part, if an index is out of bounds.
bool gather(void* out, const void* x, const ScatterLayout& l, DType dtype);
// As gather; entries that meet at one element are applied in row-major order of the index along
// `dim`.
bool scatter(void* target, const void* src, const ScatterLayout& l, DType dtype, ScatterMode mode);

}  // namespace taeda::cpu
