// Transposing a matrix of elements of 1, 2, 4 or 8 bytes, whatever they are.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// dst[j, i] = src[i, j] for i < n, j < m: rows of src are `src_step` bytes apart, those of dst
// `dst_step`; within a row elements lie side by side.
using Transpose = void (*)(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                           int64_t n, int64_t m);

// The streamed ones use non-temporal stores: dst and dst_step must then be multiples of 64.
struct TransposeKernels {
  Transpose by[2][4];  // [streamed][log2 of the bytes]

  Transpose of(int64_t item, bool streamed) const {
    return by[streamed][__builtin_ctzll(static_cast<uint64_t>(item))];
  }
};

// Rows of src that are walked side by side: cut between threads at multiples of it.
constexpr int64_t transpose_rows(int64_t item) { return 256 / item; }

TAEDA_TABLES(TransposeKernels, transpose_kernels)

}  // namespace taeda::cpu::simd
