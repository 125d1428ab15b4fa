// Structured kernels exist for float and double; half types pass through them as float32.
#pragma once

#include "ops/tensor_ops.h"

namespace taeda {

// The dtype in which a structured kernel works on `d`; NotImplementedError naming `what` for
// integers, complex and the floats of 8 bits, which are only stored.
inline DType compute_dtype(DType d, const char* what) {
  if (is_half(d)) return DType::Float32;
  if (!is_floating(d) || is_float8(d)) unsupported_dtype(what, d);
  return d;
}

// Contiguous, in `dtype`, without autograd: what a kernel reads.
inline Tensor prepared(const Tensor& t, DType dtype) {
  if (!t.defined() || (t.dtype() == dtype && t.is_contiguous())) return t;
  Tensor r = empty(t.sizes(), {dtype, t.device()});
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

// The kernel's result in the caller's dtype.
inline Tensor finished(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor r = empty(t.sizes(), {dtype, t.device()});
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

}  // namespace taeda
