// Reading a block of elements by a list of indices for each of its dimensions, as padding does.
#pragma once

#include <vector>

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

// Planes of a contiguous array; element (i, j, ...) of a plane of the result comes from element
// (indices[0][i], indices[1][j], ...) of the same plane of the source.
struct IndexedBlock {
  int64_t planes = 1;
  Dims source, result;  // sizes of a plane of each, one dimension at least, none of size 0
  std::vector<const int64_t*> indices;
};

void read_block(void* out, const void* x, const IndexedBlock& l, DType dtype);
// gx = 0, then g is added to where its elements come from, in order.
void accumulate_block(void* gx, const void* g, const IndexedBlock& l, DType dtype);

}  // namespace taeda::cpu
