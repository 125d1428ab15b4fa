// One Python object to one Value.
#include <cstring>

#include "python/arguments.h"
#include "python/batching.h"
#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

bool holds_int(const Tensor& t) {
  return t.dim() == 0 && is_integral(t.dtype(), false) && !t.is_meta();
}

[[noreturn]] void overflow() {
  PyErr_Clear();
  fail<ValueError>("Overflow when unpacking long long");
}

int64_t unpack_int(PyObject* number) {
  int over = 0;
  long long v = PyLong_AsLongLongAndOverflow(number, &over);
  if (over) overflow();
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

// For numbers (not sizes), PyTorch propagates Python's own exception.
int64_t unpack_number(PyObject* number) {
  int over = 0;
  long long v = PyLong_AsLongLongAndOverflow(number, &over);
  if (over) {
    PyErr_SetString(PyExc_OverflowError, "int too big to convert");
    throw PythonError();
  }
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

double as_double(PyObject* o) {
  double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw PythonError();
  return d;
}

bool as_float(PyObject* o, double* d) {
  if (PyFloat_Check(o)) {
    *d = PyFloat_AS_DOUBLE(o);
    return true;
  }
  Scalar s;
  if (!as_scalar(o, &s) || s.is_complex()) return false;
  *d = s.to_double();
  return true;
}

bool as_tensor_list(PyObject* o, const Param& p, Value& v) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  TensorList list;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  list.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (is_tensor(item)) {
      list.push_back(tensor_of(item));
    } else if (item == Py_None && p.arg->allows_none_items) {
      list.emplace_back();
    } else {
      return false;
    }
  }
  v = std::move(list);
  return true;
}

bool as_floats(PyObject* o, Value& v) {
  std::vector<double> list;
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    double d;
    const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(o, i));
    if (!as_float(item.get(), &d)) return false;
    list.push_back(d);
  }
  v = std::move(list);
  return true;
}

bool as_bool(PyObject* o, bool* b) {
  if (PyBool_Check(o)) {
    *b = o == Py_True;
    return true;
  }
  if (!is_numpy_scalar(o) || std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) return false;
  int truth = PyObject_IsTrue(o);
  must(truth);
  *b = truth;
  return true;
}

}  // namespace

bool is_numpy_scalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name, "numpy.ndarray") != 0 &&
         PyNumber_Check(o);
}

bool as_scalar(PyObject* o, Scalar* s, bool tensors) {
  if (PyFloat_Check(o)) {
    *s = PyFloat_AS_DOUBLE(o);
  } else if (PyBool_Check(o)) {
    *s = o == Py_True;
  } else if (PyLong_Check(o)) {
    *s = unpack_number(o);
  } else if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    *s = cdouble(c.real, c.imag);
  } else if (is_tensor(o)) {
    if (!tensors) return false;
    const Tensor& t = tensor_of(o);
    if (t.dim() != 0 || t.requires_grad_flag() || t.is_meta() || is_batched(t)) return false;
    *s = t.item();
  } else if (is_numpy_scalar(o)) {
    const char* name = Py_TYPE(o)->tp_name + 6;
    if (std::strncmp(name, "bool", 4) == 0) {
      bool b;
      as_bool(o, &b);
      *s = b;
    } else if (PyIndex_Check(o)) {
      *s = unpack_number(take(PyNumber_Index(o)).get());
    } else if (std::strncmp(name, "complex", 7) == 0 || std::strcmp(name, "clongdouble") == 0) {
      Py_complex c = PyComplex_AsCComplex(o);
      if (PyErr_Occurred()) throw PythonError();
      *s = cdouble(c.real, c.imag);
    } else {
      *s = as_double(o);
    }
  } else {
    return false;
  }
  return true;
}

bool as_int(PyObject* o, int64_t* i) {
  if (PyLong_CheckExact(o)) {
    *i = unpack_int(o);
    return true;
  }
  if (PyBool_Check(o) || PyFloat_Check(o)) return false;
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (!holds_int(t)) return false;
    *i = t.item().to_int();
    return true;
  }
  if (!PyLong_Check(o) && !PyIndex_Check(o)) return false;
  if (std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0) return false;
  *i = unpack_int(take(PyNumber_Index(o)).get());
  return true;
}

bool as_dims(PyObject* const* items, size_t n, Dims* d, PyObject** got) {
  d->clear();
  for (size_t k = 0; k < n; ++k) {
    int64_t i;
    if (PyBool_Check(items[k])) {
      i = items[k] == Py_True;
    } else if (!as_int(items[k], &i)) {
      if (got) *got = items[k];
      return false;
    }
    d->push_back(i);
  }
  return true;
}

bool as_dims(PyObject* o, Dims* d, PyObject** got) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  // An item that is not plainly an int may run code that changes the list.
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyRef items;
  for (Py_ssize_t i = 0; i < n && !items; ++i) {
    if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(o, i))) items = take(PySequence_Tuple(o));
  }
  if (items) o = items.get();
  if (!as_dims(PySequence_Fast_ITEMS(o), static_cast<size_t>(PySequence_Fast_GET_SIZE(o)), d, got))
    return false;
  return true;
}

bool convert(PyObject* o, const Param& p, Value& v) {
  if (p.kind == ArgKind::Tensor && is_tensor(o)) {
    if (is_none(v)) std::construct_at(&v, tensor_of(o));
    else v = tensor_of(o);
    return true;
  }
  if (o == Py_None) {
    if (p.none_is_default) v = p.arg->fallback;
    else if (p.optional) v = Value();
    else return false;
    return true;
  }
  switch (p.kind) {
    case ArgKind::Tensor: {
      Scalar s;
      if (!p.takes_number || !as_scalar(o, &s, false)) return false;
      v = Tensor(s);
      return true;
    }
    case ArgKind::TensorList: return as_tensor_list(o, p, v);
    case ArgKind::Scalar: {
      Scalar s;
      if (!as_scalar(o, &s)) return false;
      v = s;
      return true;
    }
    case ArgKind::Int: {
      int64_t i;
      if (!as_int(o, &i)) return false;
      v = i;
      return true;
    }
    case ArgKind::Float: {
      double d;
      if (!as_float(o, &d)) return false;
      v = d;
      return true;
    }
    case ArgKind::Bool: {
      bool b;
      if (!as_bool(o, &b)) return false;
      v = b;
      return true;
    }
    case ArgKind::Str:
      if (!PyUnicode_Check(o)) return false;
      v = to_string(o);
      return true;
    case ArgKind::Ints: {
      Dims d;
      int64_t i;
      if (as_dims(o, &d)) {
        v = std::move(d);
      } else if (p.arg->repeat > 0 && as_int(o, &i)) {
        v = Dims(static_cast<size_t>(p.arg->repeat), i);
      } else {
        return false;
      }
      return true;
    }
    case ArgKind::Floats: {
      double d;
      if (as_floats(o, v)) return true;
      if (p.arg->repeat <= 0 || !as_float(o, &d)) return false;
      v = std::vector<double>(static_cast<size_t>(p.arg->repeat), d);
      return true;
    }
    case ArgKind::DType: {
      DType d;
      if (!as_dtype(o, &d)) return false;
      v = d;
      return true;
    }
    case ArgKind::Device: {
      Device d;
      if (!as_device(o, &d)) return false;
      v = d;
      return true;
    }
    case ArgKind::Generator: {
      Generator g;
      if (!as_generator(o, &g)) return false;
      v = std::move(g);
      return true;
    }
    case ArgKind::MemoryFormat: {
      MemoryFormat m;
      if (!as_memory_format(o, &m)) return false;
      v = m;
      return true;
    }
  }
  return false;
}

}  // namespace taeda::py
