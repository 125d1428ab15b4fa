// Moves elements between two strided arrays of the same shape. Strides are in elements and may be
// negative or zero.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

// A dtype of 2, 4, 8 or 16 bytes, for elements that are only moved.
inline DType dtype_of_size(int64_t bytes) {
  return bytes == 16  ? DType::Complex128
         : bytes == 8 ? DType::Int64
         : bytes == 4 ? DType::Int32
                      : DType::Int16;
}

void move_strided(void* dst, DimsRef dst_strides, const void* src, DimsRef src_strides,
                  DimsRef sizes, DType dtype);

}  // namespace taeda::cpu
