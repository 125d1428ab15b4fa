#include "python/errors.h"

#include <unistd.h>

#include <cstring>
#include <new>

#include "base/unavailable.h"
#include "nanobind/nanobind.h"
#include "ops/linalg/linalg.h"

namespace taeda::py {
namespace {

PyObject* lin_alg_error = nullptr;

}  // namespace

void init_errors(PyObject* module) {
  lin_alg_error = must(PyErr_NewExceptionWithDoc(
      "taeda.linalg.LinAlgError",
      "A matrix is not what a function of linear algebra needs: singular, not positive-definite, "
      "not finite, or one for which the algorithm does not converge.",
      PyExc_RuntimeError, nullptr));
  must(PyModule_AddObjectRef(module, "LinAlgError", lin_alg_error));
}

namespace {

// Whether a message starts like "softmax(): " or "linalg.qr: ".
bool names_function(std::string_view message) {
  const size_t end = message.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.()");
  return end != 0 && end != message.npos && message[end] == ':';
}

PyObject* device_out_of_memory() {
  static PyObject* type = nullptr;
  if (!type) {
    const PyRef errors(must(PyImport_ImportModule("taeda._errors")));
    type = must(PyObject_GetAttrString(errors.get(), "OutOfMemoryError"));
  }
  return type;
}

void set_error(PyObject* type, std::string_view function, const char* message) {
  std::string text(message);
  if (!function.empty() && !names_function(message) &&
      text.find(str(function, "(")) == std::string::npos)
    text = str(function, "(): ", message);
  // A path in it may be of any bytes.
  const PyRef shown(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (shown) PyErr_SetObject(type, shown.get());
}

}  // namespace

void sleep_until_exit() noexcept {
  for (;;) pause();
}

namespace {

void translate(std::string_view function) {
  try {
    throw;
  } catch (const PythonError&) {
    // already set
  } catch (const TypeError& e) {
    set_error(PyExc_TypeError, function, e.what());
  } catch (const ValueError& e) {
    set_error(PyExc_ValueError, function, e.what());
  } catch (const IndexError& e) {
    set_error(PyExc_IndexError, function, e.what());
  } catch (const NotImplemented& e) {
    set_error(PyExc_NotImplementedError, function, e.what());
  } catch (const Unavailable& e) {
    set_error(PyExc_AssertionError, function, e.what());
  } catch (const DeviceOutOfMemory& e) {
    set_error(device_out_of_memory(), function, e.what());
  } catch (const OutOfMemory& e) {
    set_error(PyExc_MemoryError, function, e.what());
  } catch (const LinAlgError& e) {
    set_error(lin_alg_error, function, e.what());
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    set_error(PyExc_MemoryError, function, "out of memory");
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, function, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception was thrown");
  }
}

}  // namespace

void translate_exception(std::string_view function) noexcept {
  try {
    translate(function);
  } catch (...) {  // not even memory for the message
    PyErr_NoMemory();
  }
}

const char* type_name(PyObject* o) {
  const char* full = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(full, '.');
  // PyTorch's types have the names of ours.
  return dot && std::strncmp(full, "torch.", 6) != 0 ? dot + 1 : full;
}

std::string to_string(PyObject* text) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(text, &n);
  if (!s) throw PythonError();
  return {s, static_cast<size_t>(n)};
}

}  // namespace taeda::py
