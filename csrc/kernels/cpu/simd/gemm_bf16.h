// The inner loops of products of bfloat16 matrices, for machines that multiply pairs of them at
// once (AVX512_BF16). A pair, two elements along the summed dimension, is one 32-bit word; sums are
// float32.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// Where it lies in a matrix.
typedef uint32_t Bf16Pair __attribute__((aligned(2), may_alias));

struct GemmBf16Kernels {
  int64_t rows, cols;  // the most rows, and the columns, of a product
  // c[r][j] = sum over p < pairs of a[r * a_row + p * a_step] times b[p * cols + j], for r < rows;
  // rows of c are `cols` apart. Null where this instruction set has no such kernel.
  void (*product)(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
                  const uint32_t* b, float* c);
  // to[p * to_step + i] = the elements x[2 p][i] and x[2 p + 1][i] (0 beyond `depth`), for i < n.
  void (*pair_rows)(const uint16_t* x, int64_t ld, int64_t depth, int64_t n, uint32_t* to,
                    int64_t to_step);
  void (*round)(const float* from, int64_t n, uint16_t* to);
};

namespace v2 {
extern const GemmBf16Kernels gemm_bf16_kernels;
}
namespace v3 {
extern const GemmBf16Kernels gemm_bf16_kernels;
}
namespace v4 {
extern const GemmBf16Kernels gemm_bf16_kernels;
}
namespace base {
extern const GemmBf16Kernels gemm_bf16_kernels;
}

}  // namespace taeda::cpu::simd
