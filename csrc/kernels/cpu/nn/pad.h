// Reading a block of elements by one list of places for each of its dimensions, as padding does.
#pragma once

#include <vector>

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

// Planes of a contiguous array; element (i, j, ...) of a plane of the result comes from element
// (places[0][i], places[1][j], ...) of the same plane of the source.
struct PlacesLayout {
  int64_t planes = 1;
  Dims source, result;  // sizes of a plane of each, one dimension at least, none of size 0
  std::vector<const int64_t*> places;
};

void places_read(void* out, const void* x, const PlacesLayout& l, DType dtype);
// gx = 0, then g is added to where its elements come from, in order.
void places_accumulate(void* gx, const void* g, const PlacesLayout& l, DType dtype);

}  // namespace taeda::cpu
