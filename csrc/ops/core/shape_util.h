// Helpers of ops on shapes: views, joins, indexing and reductions.
#pragma once

#include "autograd/backward.h"
#include "ops/core/op.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"

namespace taeda {

// A dimension as a bit of a set, which has room for all that a tensor may have; IndexError outside
// the range.
static_assert(kMostDims <= 64);
inline uint64_t dim_bit(int64_t dim, int64_t ndim) { return uint64_t(1) << wrap_dim(dim, ndim); }

// Of ops that give the same elements another shape.
inline void reshape_backward(Backward& b) { b.set(0, reshape(b.grad(), b.sizes(0))); }

// The set of dimensions `dims` as bits; RuntimeError for duplicates.
inline uint64_t dim_mask(DimsRef dims, int64_t ndim) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    const uint64_t bit = dim_bit(d, ndim);
    check(!(mask & bit), "dim ", wrap_dim(d, ndim), " appears multiple times in the list of dims");
    mask |= bit;
  }
  return mask;
}

// NotImplementedError for a dtype whose values are only stored. A kernel for such values cannot be
// expected of a device, and an error inside of one may come late.
inline void need_arithmetic(const char* what, DType d) {
  if (is_storage_only(d)) unsupported_dtype(what, d);
}

inline int64_t at(DimsRef d, int64_t i) { return d[static_cast<size_t>(i)]; }

// Zeros without dispatch: nothing is recorded.
inline Tensor raw_zeros(DimsRef sizes, Options o) {
  Tensor t = empty(sizes, o);
  fill_with(t, 0);
  return t;
}

// Contiguous form without dispatch; the tensor itself if it is contiguous already.
inline Tensor raw_contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor t = empty(x.sizes(), x.options());
  if (!x.is_meta()) copy_into(t, x);
  return t;
}

inline Tensor raw_clone(const Tensor& x) {
  Tensor t = empty(x.sizes(), x.options());
  if (!x.is_meta()) copy_into(t, x);
  return t;
}

inline Tensor raw_cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor t = empty(x.sizes(), {dtype, x.device()});
  if (!x.is_meta()) copy_into(t, x);
  return t;
}

// Plain views for use inside kernels: no base, no history.
inline Tensor raw_view(const Tensor& x, DimsRef sizes, DimsRef strides, int64_t offset) {
  return from_storage(x.storage(), sizes, strides, offset, x.dtype());
}
inline Tensor raw_narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  Dims sizes(x.sizes());
  sizes[static_cast<size_t>(dim)] = length;
  int64_t offset = length > 0 ? x.offset() + start * at(x.strides(), dim) : x.offset();
  return raw_view(x, sizes, x.strides(), offset);
}
// A complex tensor's real and imaginary parts as a last dimension.
inline Tensor raw_view_as_real(const Tensor& x) {
  Dims sizes(x.sizes()), strides(x.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return from_storage(x.storage(), sizes, strides, x.offset() * 2, to_real(x.dtype()));
}
// What kernels that add up elements take: the parts of a complex32 tensor, others as they are.
inline Tensor raw_parts(const Tensor& x) {
  return x.dtype() == DType::Complex32 ? raw_view_as_real(x) : x;
}

}  // namespace taeda
