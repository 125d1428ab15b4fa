// Transposing a matrix of numbers, by the kernels of pointwise/simd/transpose.h.
#pragma once

#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu {

// to[j * to_step + i] = from[i * from_step + j], i < rows and j < cols.
template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t cols, T* to,
               int64_t to_step) {
  constexpr int64_t size = sizeof(T);
  TAEDA_PICK(transpose_kernels)
      .of(size, false)(reinterpret_cast<char*>(to), to_step * size,
                       reinterpret_cast<const char*>(from), from_step * size, rows, cols);
}

}  // namespace taeda::cpu
