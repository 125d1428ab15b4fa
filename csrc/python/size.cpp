// taeda.Size: a tuple of ints that stays a Size when it is sliced, joined or repeated.
#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {

PyTypeObject* SizeType = nullptr;

namespace {

PyObject* make(Py_ssize_t n) {
  PyObject* o = must(SizeType->tp_alloc(SizeType, n));
#if PY_VERSION_HEX >= 0x030E0000
  reinterpret_cast<PyTupleObject*>(o)->ob_hash = -1;  // tuples keep their hash: none yet
#endif
  return o;
}

void require_int64(PyObject* number) {
  int over = 0;
  const long long v = PyLong_AsLongLongAndOverflow(number, &over);
  check<ValueError>(!over, "Overflow when unpacking long long");
  if (v == -1 && PyErr_Occurred()) throw PythonError();
}

// A Size with a tuple's items.
PyObject* from_tuple(PyObject* tuple) {
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyRef result(make(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (PyLong_Check(item)) {
      require_int64(item);
      PyTuple_SET_ITEM(result.get(), i, Py_NewRef(item));
      continue;
    }
    if (!PyIndex_Check(item) || (is_tensor(item) && tensor_of(item).dim() != 0)) {
      fail<TypeError>("taeda.Size() takes an iterable of 'int' (item ", i, " is '", type_name(item),
                      "')");
    }
    PyRef number = take(PyNumber_Index(item));
    require_int64(number.get());
    PyTuple_SET_ITEM(result.get(), i, number.release());
  }
  return result.release();
}

PyObject* size_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyRef tuple = take(PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs));
    return from_tuple(tuple.get());
  });
}

PyObject* size_repr(PyObject* o) {
  std::string s = "taeda.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    s += (i ? ", " : "") + std::to_string(PyLong_AsLongLong(PyTuple_GET_ITEM(o, i)));
  }
  return PyUnicode_FromString((s + "])").c_str());
}

PyObject* concatenate(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    if (!PyTuple_Check(a)) Py_RETURN_NOTIMPLEMENTED;
    return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not \"%s\") to taeda.Size",
                        type_name(b));
  }
  return guarded(
      [&] { return from_tuple(take(PyTuple_Type.tp_as_sequence->sq_concat(a, b)).get()); });
}

PyObject* repeat(PyObject* o, Py_ssize_t n) {
  return guarded(
      [&] { return from_tuple(take(PyTuple_Type.tp_as_sequence->sq_repeat(o, n)).get()); });
}

PyObject* subscript(PyObject* o, PyObject* index) {
  PyObject* item = PyTuple_Type.tp_as_mapping->mp_subscript(o, index);
  if (!item || !PySlice_Check(index)) return item;
  PyRef slice(item);
  return guarded([&] { return from_tuple(slice.get()); });
}

PyObject* size_numel(PyObject* o, PyObject*) {
  return guarded([&] {
    int64_t n = 1;
    bool zero = false, overflow = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      const int64_t size = PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
      zero |= size == 0;
      overflow |= __builtin_mul_overflow(n, size, &n);
    }
    check(zero || !overflow, "numel: integer multiplication overflow");
    return must(PyLong_FromLongLong(zero ? 0 : n));
  });
}

PyObject* size_reduce(PyObject* o, PyObject*) {
  PyRef tuple(PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o)));
  if (tuple && PyTuple_GET_SIZE(o) > 0 && !PyTuple_CheckExact(tuple.get()))
    tuple = PyRef(PySequence_Tuple(tuple.get()));
  return tuple ? Py_BuildValue("O(O)", SizeType, tuple.get()) : nullptr;
}

PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "The product of the sizes: 1 for an empty Size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* size_object(DimsRef d) {
  PyRef result(make(static_cast<Py_ssize_t>(d.size())));
  for (size_t i = 0; i < d.size(); ++i) {
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), must(PyLong_FromLongLong(d[i])));
  }
  return result.release();
}

void init_size(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(size_new)},
      {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
      {Py_nb_add, reinterpret_cast<void*>(concatenate)},
      {Py_sq_concat, reinterpret_cast<void*>(concatenate)},
      {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
      {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
      {Py_tp_methods, size_methods},
      {Py_tp_doc, const_cast<char*>("The sizes of a tensor's dimensions: a tuple of ints.")},
      {0, nullptr}};
  PyType_Spec spec{"taeda.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  SizeType = reinterpret_cast<PyTypeObject*>(
      must(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyTuple_Type))));
  must(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(SizeType)));
}

}  // namespace taeda::py
