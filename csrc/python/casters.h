// How functions bound with nanobind take and return tensors, dtypes and devices.
#pragma once

#include <nanobind/nanobind.h>

#include "python/objects.h"
#include "python/tensor_type.h"

namespace nanobind::detail {

template <> struct type_caster<taeda::Tensor> {
  NB_TYPE_CASTER(taeda::Tensor, const_name("taeda.Tensor"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!taeda::py::is_tensor(src.ptr())) return false;
    value = taeda::py::tensor_of(src.ptr());
    return true;
  }
  static handle from_cpp(const taeda::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return taeda::py::guarded([&] { return taeda::py::wrap(t); });
  }
};

template <> struct type_caster<taeda::DType> {
  NB_TYPE_CASTER(taeda::DType, const_name("taeda.dtype"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return taeda::py::as_dtype(src.ptr(), &value);
  }
  static handle from_cpp(taeda::DType d, rv_policy, cleanup_list*) noexcept {
    return taeda::py::dtype_object(d);
  }
};

template <> struct type_caster<taeda::Device> {
  NB_TYPE_CASTER(taeda::Device, const_name("taeda.device"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    try {
      return taeda::py::as_device(src.ptr(), &value);
    } catch (...) {
      return false;
    }
  }
  static handle from_cpp(taeda::Device d, rv_policy, cleanup_list*) noexcept {
    return taeda::py::device_object(d);
  }
};

}  // namespace nanobind::detail
