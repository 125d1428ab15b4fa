// Windows of planes laid out one in each column, and the sums of such columns put back.
#pragma once

#include "base/dtype.h"

namespace taeda::cpu {

// Of (planes, in) with windows at out[0] x out[1] places. Columns are (planes, kernel, out).
struct FoldShape {
  int64_t planes;
  int64_t in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];
};

// Zeros where a window hangs over an edge.
void windows_to_columns(const FoldShape& s, const void* x, void* columns, DType dtype);
// Every element of x: the sum of those of the columns that the above would take from it.
void columns_to_windows(const FoldShape& s, const void* columns, void* x, DType dtype);

}  // namespace taeda::cpu
