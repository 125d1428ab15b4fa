// Helpers of ops that create tensors from numbers: their keyword arguments, and filling.
#pragma once

#include "kernels/creation.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"

// The last arguments of a factory's schema.
#define TAEDA_OPTIONS "dtype: dtype? = None, device: device? = None, requires_grad: bool = False"
#define TAEDA_LIKE TAEDA_OPTIONS ", memory_format: memory_format? = None"

namespace taeda::factory {

template <class T> const T& get(const Call& c, size_t i) { return std::get<T>(c.args[i]); }
template <class T> std::optional<T> maybe(const Call& c, size_t i) {
  return Unpack<std::optional<T>>::get(c.args[i]);
}

// The keyword arguments dtype, device, requires_grad, which are consecutive from position `at`.
inline Options options_of(const Call& c, size_t at, Options fallback) {
  if (c.out.defined()) fallback = c.out.options();
  const Options o{maybe<DType>(c, at).value_or(fallback.dtype),
                  maybe<Device>(c, at + 1).value_or(fallback.device)};
  require_available(o.device);
  if (c.out.defined()) {
    check(o.dtype == c.out.dtype(), c.op.name, "(): dtype ", o.dtype,
          " does not match dtype of out parameter (", c.out.dtype(), ")");
  }
  return o;
}
inline Options options_of(const Call& c, size_t at) { return options_of(c, at, Options{}); }

// Returns the new tensor with its requires_grad flag, or copies it into out=.
inline Value finished(const Call& c, size_t at, const Tensor& t) {
  const bool wanted = get<bool>(c, at + 2);
  if (wanted) {
    check(is_inexact(t.dtype()), c.op.name,
          "(): Only Tensors of floating point and complex dtype can require gradients");
    check(!c.out.defined(), c.op.name, "(): out= and requires_grad=True exclude each other");
    t.impl()->flags |= kRequiresGrad;
  }
  if (!c.out.defined()) return t;
  resize(c.out, t.sizes());
  copy_into(c.out, t);
  return c.out;
}

// The same of numbers in a row. As in PyTorch, an `out` that has as many elements keeps its shape.
inline Value finished_range(const Call& c, size_t at, const Tensor& t) {
  const bool fits = c.out.defined() && c.out.numel() == t.numel();
  return finished(c, at, fits ? reshape(t, c.out.sizes()) : t);
}

inline Tensor filled(DimsRef sizes, Options o, Scalar value) {
  Tensor t = empty(sizes, o);
  fill_with(t, value);
  return t;
}

// t[i] = f(i) for a new one-dimensional tensor; f gives a double, or an int64 where the dtype is
// integral. Computed on the host, whatever the device.
template <class F> void tabulate(const Tensor& t, F&& f) {
  if (t.is_meta()) return;
  if (t.device().type != DeviceType::CPU) {
    const Tensor host = empty(t.sizes(), {t.dtype(), Device{}});
    tabulate(host, f);
    return copy_into(t, host);
  }
  visit_all(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    tabulate_values(t.numel(), t.data_as<T>(), f);
  });
}

inline Kernel raw(Value (*f)(Call&)) { return raw_kernel(f, true); }

}  // namespace taeda::factory
