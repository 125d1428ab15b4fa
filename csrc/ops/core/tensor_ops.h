// Operators and short names on Tensor, so that derivatives read like formulas. All are dispatched.
#pragma once

#include <initializer_list>

#include "ops/core/op.h"

namespace taeda {

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator*(const Tensor& a, double b);
Tensor operator*(double a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(double a, const Tensor& b);
Tensor operator/(const Tensor& a, double b);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator!(const Tensor& a);

Tensor sum(const Tensor& x, DimsRef dims, bool keepdim = false);
Tensor sum_to(const Tensor& x, DimsRef sizes);  // undoes a broadcast from `sizes` to x.sizes()
Tensor expand(const Tensor& x, DimsRef sizes);
Tensor reshape(const Tensor& x, DimsRef sizes);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor squeeze(const Tensor& x, int64_t dim);
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
Tensor permute(const Tensor& x, DimsRef dims);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor contiguous(const Tensor& x);
Tensor to(const Tensor& x, DType dtype);
Tensor conj(const Tensor& x);  // the tensor itself if it is real
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b);
Tensor zeros(DimsRef sizes, Options o);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full(DimsRef sizes, Scalar v, Options o);
Tensor clone(const Tensor& x);

// ---- without dispatch ----
// Whether a derivative may call kernels directly: no layer is active, and nothing will
// differentiate the result.
bool is_unwatched(std::initializer_list<const Tensor*> tensors);
// dst[...] = src[...], broadcast and cast. With `non_blocking`, a copy from or to pinned memory may
// be done later.
void copy_into(const Tensor& dst, const Tensor& src, bool non_blocking = false);
// The tensor itself where it is on `device` already.
Tensor raw_to(Device device, const Tensor& t);
Tensor raw_sum(const Tensor& x, DimsRef dims, bool keepdim);

}  // namespace taeda
