// Matrix products by cuBLASLt, where NVIDIA's package nvidia-cublas is installed.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/gemm.h"

namespace taeda::cuda {

struct LtMatrix {
  const void* data;
  int64_t stride;  // from row to row, in elements
  int64_t step;    // from matrix to matrix of the batch
  Trans trans;
};

// c = alpha * op(a) op(b) + beta * c, and `bias` (n elements of c's dtype, or null) added to every
// row. Row-major, as in kernels/gemm.h.
struct LtProduct {
  DType in, out;  // of a and b, and of c
  int64_t batch, m, n, k;
  LtMatrix a, b;
  void* c;
  int64_t ldc, c_step;
  const void *alpha, *beta;  // of c's dtype, or float
  const void* bias;
};

// False where there is no cuBLASLt, or it has no kernel for the product; nothing is done then.
bool multiply_by_cublas(const LtProduct& p);

// Whether products of float32 may round their operands to TF32.
void allow_tf32(bool allowed);
// While one lives, this thread's do not.
class WithoutTf32 {
 public:
  WithoutTf32();
  ~WithoutTf32();
  WithoutTf32(const WithoutTf32&) = delete;
  WithoutTf32& operator=(const WithoutTf32&) = delete;

 private:
  bool before_;
};

}  // namespace taeda::cuda
