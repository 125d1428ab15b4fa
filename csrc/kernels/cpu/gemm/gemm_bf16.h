// Products of bfloat16 matrices with float32 sums, where the machine has instructions for them.
#pragma once

#include "base/half.h"
#include "kernels/cpu/gemm/blas.h"

namespace taeda::cpu {

bool can_multiply_bf16();

// c = alpha * op(a) op(b) + beta * c as gemm() does it; only if can_multiply_bf16().
void gemm_bf16(int64_t m, int64_t n, int64_t k, float alpha, MatrixRef<BFloat16> a,
               MatrixRef<BFloat16> b, float beta, float* c, int64_t ldc);
// c = op(a) op(b), rounded once.
void gemm_bf16(int64_t m, int64_t n, int64_t k, MatrixRef<BFloat16> a, MatrixRef<BFloat16> b,
               BFloat16* c, int64_t ldc);

// Rounds n numbers; only if can_multiply_bf16().
void round_to_bf16(const float* from, int64_t n, BFloat16* to);

}  // namespace taeda::cpu
