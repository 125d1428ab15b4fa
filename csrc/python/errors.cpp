#include "python/errors.h"

#include <cstring>
#include <new>

#include "nanobind/nanobind.h"
#include "ops/linalg.h"

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

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    // set already
  } catch (const TypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const ValueError& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const IndexError& e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const NotImplemented& e) {
    PyErr_SetString(PyExc_NotImplementedError, e.what());
  } catch (const OutOfMemory& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
  } catch (const LinAlgError& e) {
    PyErr_SetString(lin_alg_error, e.what());
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception was thrown");
  }
}

const char* type_name(PyObject* o) {
  const char* full = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(full, '.');
  return dot ? dot + 1 : full;
}

std::string to_string(PyObject* text) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(text, &n);
  if (!s) throw PythonError();
  return {s, static_cast<size_t>(n)};
}

}  // namespace taeda::py
