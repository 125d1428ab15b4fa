// taeda for extensions bound with pybind11: functions take and return taeda::Tensor, and the errors
// of taeda.h become Python's.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "taeda.h"

namespace pybind11::detail {

template <> struct type_caster<taeda::Tensor> {
  PYBIND11_TYPE_CASTER(taeda::Tensor, const_name("taeda.Tensor"));
  bool load(handle source, bool) { return taeda::from_python(source.ptr(), &value); }
  static handle cast(const taeda::Tensor& t, return_value_policy, handle) {
    return taeda::to_python(t);
  }
};

}  // namespace pybind11::detail

namespace taeda {
inline namespace v1 {

// Called in the module's function: errors of taeda's types become the right Python exceptions. They
// are RuntimeErrors without it.
inline void translate_errors() {
  pybind11::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      raise(e);
    }
  });
}

}  // namespace v1
}  // namespace taeda
