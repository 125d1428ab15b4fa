// Products of few rows, or one column, with a large matrix of float16 or bfloat16 numbers.
#pragma once

#include "kernels/cpu/gemm/blas.h"

namespace taeda::cpu {

// Elements of halves, whichever they are.
struct HalfMatrix {
  const uint16_t* data;
  int64_t row, col;  // steps
};

// Whether op(a) (m x k) op(b) (k x n) is worth a kernel that reads the larger side where it lies.
bool has_few_rows(bool brain, int64_t m, int64_t n, int64_t k, const HalfMatrix& a,
                  const HalfMatrix& b);

// c = alpha * a b + beta * c, rows of c n elements apart; where has_few_rows().
void multiply_few_rows(bool brain, int64_t m, int64_t n, int64_t k, float alpha,
                       const HalfMatrix& a, const HalfMatrix& b, float beta, float* c);

}  // namespace taeda::cpu
