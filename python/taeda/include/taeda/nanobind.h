// taeda for extensions bound with nanobind: functions take and return taeda::Tensor, and the errors
// of taeda.h become Python's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "taeda.h"

namespace nanobind::detail {

template <> struct type_caster<taeda::Tensor> {
  NB_TYPE_CASTER(taeda::Tensor, const_name("taeda.Tensor"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    try {
      return taeda::from_python(source.ptr(), &value);
    } catch (const taeda::Error&) {
      return false;
    }
  }
  static handle from_cpp(const taeda::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return taeda::to_python(t);
  }
};

}  // namespace nanobind::detail

namespace taeda {
inline namespace v1 {

// Called in the module's function: errors of taeda's types become the right Python exceptions. They
// are RuntimeErrors without it.
inline void translate_errors() {
  nanobind::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      raise(e);
    }
  });
}

}  // namespace v1
}  // namespace taeda
