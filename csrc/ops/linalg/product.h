// Products of two batches of matrices, without dispatch, and their checks.
#pragma once

#include "ops/core/tensor_ops.h"

namespace taeda {

// out (B, m, n), contiguous = alpha * a (B, m, k) @ b (B, k, n) + beta * out; if `b_transposed`, b
// is (n, k). A two-dimensional operand is one matrix. `out` is of product_dtype().
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, Scalar alpha, Scalar beta,
              bool b_transposed = false);

// out (m, n) = a (m, k) @ b' + bias, of n elements or one; b is (n, k). All of one dtype.
void multiply_onto(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out);

// What multiply() writes for operands of `d`: float32 for half precision, unless the device's
// products round. NotImplementedError for bools.
DType product_dtype(DType d, Device device);

// a @ b, a new tensor of `sizes` and of a's dtype.
Tensor product(const Tensor& a, const Tensor& b, DimsRef sizes);

// RuntimeError that names `what` unless both have one dtype and device.
void check_product_dtypes(const char* what, const Tensor& a, const Tensor& b);
// The same unless they are matrices that can be multiplied.
void check_product(const char* what, const Tensor& a, const Tensor& b);

}  // namespace taeda
