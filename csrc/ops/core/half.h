// Structured kernels exist for float and double; half-precision tensors are converted to float32
// and back.
#pragma once

#include "kernels/kernels.h"
#include "ops/core/tensor_ops.h"

namespace taeda {

// The dtype in which a structured kernel computes for `d`. NotImplementedError that names `what`
// for integers, complex numbers and the storage-only 8-bit floats.
inline DType compute_dtype(DType d, const char* what) {
  if (is_half(d)) return DType::Float32;
  if (!is_floating(d) || is_float8(d)) unsupported_dtype(what, d);
  return d;
}

// The dtype in which kernels K take tensors of `d`: of half precision where the device has kernels
// for it, else that which they compute in.
template <template <class> class K> DType kernel_dtype(DType d, Device device, const char* what) {
  const DType compute = compute_dtype(d, what);
  if (!is_half(d) || device.type == DeviceType::CPU) return compute;
  return has_kernels<K<Half>>(device) && has_kernels<K<BFloat16>>(device) ? d : compute;
}
template <class F> decltype(auto) visit_kernel_dtype(DType d, const char* what, F&& f) {
  if (d == DType::Float16) return f(Tag<Half>{});
  if (d == DType::BFloat16) return f(Tag<BFloat16>{});
  return visit_floating(d, what, std::forward<F>(f));
}

// A kernel's input: contiguous, in `dtype`, without autograd.
inline Tensor prepared(const Tensor& t, DType dtype) {
  if (!t.defined() || (t.dtype() == dtype && t.is_contiguous())) return t;
  Tensor r = empty(t.sizes(), {dtype, t.device()});
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

// Converts a kernel's result to the caller's dtype.
inline Tensor finished(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor r = empty(t.sizes(), {dtype, t.device()});
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

}  // namespace taeda
