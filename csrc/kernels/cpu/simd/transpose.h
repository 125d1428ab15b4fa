// Transposing a matrix of 4- or 8-byte elements, whatever they are.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// dst[j, i] = src[i, j] for i < n, j < m: rows of src are `src_step` bytes apart, those of dst
// `dst_step`; within a row elements lie side by side.
using Transpose = void (*)(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                           int64_t n, int64_t m);

// The streamed ones write past the caches: dst and dst_step must then be multiples of 64.
struct TransposeKernels {
  Transpose bytes4, bytes8, streamed4, streamed8;
};

// Rows of src that are walked side by side: cut between threads at multiples of it.
constexpr int64_t transpose_rows(int64_t item) { return 256 / item; }

namespace v2 {
extern const TransposeKernels transpose_kernels;
}
namespace v3 {
extern const TransposeKernels transpose_kernels;
}
namespace v4 {
extern const TransposeKernels transpose_kernels;
}
namespace base {
extern const TransposeKernels transpose_kernels;
}

}  // namespace taeda::cpu::simd
