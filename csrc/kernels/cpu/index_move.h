// Moves elements between two strided arrays of the same shape. Strides are in elements and may be
// negative or zero.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

void move_strided(void* dst, DimsRef dst_strides, const void* src, DimsRef src_strides,
                  DimsRef sizes, DType dtype);

}  // namespace taeda::cpu
