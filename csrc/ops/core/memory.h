// The memory of tensors, as ops know it: something to hand to a kernel. It may be a device's, so
// that ops pass `data()`, `data_as<T>()` and `memory<T>()` on as arguments and never read or write
// through them. Values that an op needs on the host come and go by the functions below.
#pragma once

#include <cstring>
#include <vector>

#include "base/device_runtime.h"
#include "ops/core/tensor_ops.h"

namespace taeda {

// Null for a tensor that is not given or has no elements.
template <class T> T* memory(const Tensor& t) {
  return t.defined() && t.numel() ? t.data_as<T>() : nullptr;
}

// The elements of a tensor of T, in row-major order.
template <class T> std::vector<T> host_values(const Tensor& t) {
  Tensor c = t;
  if (!t.is_contiguous() || t.is_placeholder()) copy_into(c = empty(t.sizes(), t.options()), t);
  std::vector<T> values(static_cast<size_t>(c.numel()));
  copy_memory(values.data(), Device{}, c.data(), c.device(), c.nbytes());
  return values;
}

// A tensor of such elements on `device`.
template <class T>
Tensor from_host(const std::vector<T>& values, DimsRef sizes, Device device = {}) {
  const Tensor t = empty(sizes, {dtype_of<T>, device});
  check(static_cast<size_t>(t.numel()) == values.size(), "from_host(): ", values.size(),
        " values do not fill the shape ", to_string(sizes));
  if (!t.is_meta()) copy_memory(t.data(), t.device(), values.data(), Device{}, t.nbytes());
  return t;
}

// The only element of a tensor of T.
template <class T> T host_value(const Tensor& t) {
  if (t.is_placeholder()) return host_values<T>(t).at(0);
  T value;
  if (is_host(t.device())) std::memcpy(&value, t.data(), sizeof value);
  else copy_memory(&value, Device{}, t.data(), t.device(), sizeof value);
  return value;
}
template <class T> void set_host_value(const Tensor& t, T value) {
  if (is_host(t.device())) std::memcpy(t.data(), &value, sizeof value);
  else copy_memory(t.data(), t.device(), &value, Device{}, sizeof value);
}

}  // namespace taeda
