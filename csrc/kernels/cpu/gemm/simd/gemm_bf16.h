// The inner loops of products of bfloat16 matrices, for machines that multiply pairs of them at
// once (AVX512_BF16). A pair, two elements along the summed dimension, is one 32-bit word; sums are
// float32.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// Where it lies in a matrix.
typedef uint32_t Bf16Pair __attribute__((aligned(2), may_alias));

// Products of `cols` columns: c[r][j] = sum over p < pairs of a[r * a_row + p * a_step] times
// b[p * cols + j], for r < rows. Null where this instruction set has no such kernel.
struct Bf16Products {
  int64_t cols;
  // Rows of c are `cols` apart.
  void (*in_float)(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
                   const uint32_t* b, float* c);
  // Rounded; the first n columns only, of rows that are ldc apart.
  void (*rounded)(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
                  const uint32_t* b, uint16_t* c, int64_t ldc, int64_t n);
};

struct GemmBf16Kernels {
  int64_t rows;  // the most of a product
  Bf16Products wide, narrow;
  // to[p * to_step + i] = the elements x[2 p][i] and x[2 p + 1][i] (0 beyond `depth`), for i < n.
  void (*pair_rows)(const uint16_t* x, int64_t ld, int64_t depth, int64_t n, uint32_t* to,
                    int64_t to_step);
  // c[i * ldc + j] = sum over p < k of x[i * x_row + p] w[j * w_row + p], for i < m, j < n.
  void (*dots)(int64_t m, int64_t n, int64_t k, const uint16_t* x, int64_t x_row, const uint16_t* w,
               int64_t w_row, float* c, int64_t ldc);
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
