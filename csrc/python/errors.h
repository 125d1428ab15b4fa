// RAII for Python references and the GIL, and translation of exceptions between C++ and Python.
#pragma once

#include <Python.h>
#include <cxxabi.h>

#include <string_view>
#include <utility>

#include "base/device.h"
#include "base/dims.h"
#include "base/error.h"

namespace taeda::py {

// A counted PyObject*. `PyRef(p)` takes over the caller's count; `PyRef::borrow(p)` adds one.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(PyObject* p) : p_(p) {}
  PyRef(const PyRef& o) : p_(Py_XNewRef(o.p_)) {}
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }
  static PyRef borrow(PyObject* p) { return PyRef(Py_XNewRef(p)); }

  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// The result of a C API call that returns nullptr after setting an exception.
inline PyObject* must(PyObject* p) {
  if (!p) throw PythonError();
  return p;
}
inline PyRef take(PyObject* p) { return PyRef(must(p)); }
inline void must(int status) {
  if (status < 0) throw PythonError();
}

// Creates taeda's own exception types.
void init_errors(PyObject* module);

// Called in a catch block: sets the Python exception that corresponds to the current C++ one.
// `function`, if given, is prefixed to messages that name no function.
void translate_exception(std::string_view function = {}) noexcept;

// Sleeps until the process ends. While it does, Python ends each thread that asks for its lock with
// pthread_exit(), which unwinds the stack; C++ frames on it would end the whole process instead.
[[noreturn]] void sleep_until_exit() noexcept;

// f(arguments), a function of Python's that takes its lock or runs code of others.
template <class F, class... A> auto python_call(F f, A... arguments) {
  try {
    return f(arguments...);
  } catch (::abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

// Runs f() and turns what it throws into a Python exception and `failure` (nullptr or -1).
template <class F, class R = decltype(std::declval<F>()())>
R guarded(F&& f, std::type_identity_t<R> failure) noexcept {
  try {
    return f();
  } catch (::abi::__forced_unwind&) {
    sleep_until_exit();
  } catch (...) {
    translate_exception();
    return failure;
  }
}
template <class F> PyObject* guarded(F&& f) noexcept {
  return guarded(std::forward<F>(f), static_cast<PyObject*>(nullptr));
}

class ReleaseGil {
 public:
  explicit ReleaseGil(bool on = true) : state_(on ? PyEval_SaveThread() : nullptr) {}
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;
  ~ReleaseGil() {
    if (state_) python_call(PyEval_RestoreThread, state_);
  }

 private:
  PyThreadState* state_;
};

class AcquireGil {
 public:
  AcquireGil() : state_(python_call(PyGILState_Ensure)) {}
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;
  ~AcquireGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// "int" for 3: the name of an object's type, for messages.
const char* type_name(PyObject* o);
using taeda::to_string;  // for dims and devices; the next adds:
std::string to_string(PyObject* text);

}  // namespace taeda::py
