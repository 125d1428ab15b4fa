// How functions that are written in Python take part in __torch_function__. Their vectorcall slot,
// which every call of a function object passes, asks first; the function stays the object that it
// was.
#include <algorithm>

#include "python/overrides.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

vectorcallfunc plain_call = nullptr;  // CPython's own, of every function written in Python

vectorcallfunc& call_slot(PyObject* function) {
  return reinterpret_cast<PyFunctionObject*>(function)->vectorcall;
}

// Whether call_override may find a class to ask. It is called with every argument of every call.
bool may_ask(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == TensorType || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
      type == &PyUnicode_Type || o == Py_None)
    return false;
  if (is_tensor(o)) return tensor_of(o).flags() & kOverride;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (!PyTuple_Check(item) && !PyList_Check(item) && may_ask(item)) return true;
    }
    return false;
  }
  return has_torch_function(type);
}

PyObject* asking_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const size_t all = count + (kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0);
  if (function_modes_entered || std::any_of(args, args + all, may_ask)) [[unlikely]] {
    PyObject* result = guarded([&] { return call_override(function, args, count, kwnames); });
    if (result || PyErr_Occurred()) return result;
  }
  return plain_call(function, args, nargsf, kwnames);
}

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// CPython 3.11 inlines calls of functions of this exact type, whatever their slot says; so these
// become instances of a subtype that adds nothing. Pickling knows the exact type only.
PyObject* reduce(PyObject* function, PyObject*) {
  return PyObject_GetAttrString(function, "__qualname__");
}
PyMethodDef type_methods[] = {{"__reduce__", reduce, METH_NOARGS, "Saved by its name."},
                              {nullptr, nullptr, 0, nullptr}};
PyTypeObject* asking_type() {
  static PyTypeObject* const type = [] {
    static PyTypeObject t{};
    Py_SET_REFCNT(&t, 1);
    t.tp_name = "function";
    t.tp_base = &PyFunction_Type;
    t.tp_basicsize = PyFunction_Type.tp_basicsize;
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_methods = type_methods;
    must(PyType_Ready(&t));
    must(PyDict_DelItemString(t.tp_dict, "__doc__"));  // the type's own would hide the functions'
    PyType_Modified(&t);
    return &t;
  }();
  return type;
}
#endif

void set_call_slot(PyObject* function) {
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(reinterpret_cast<PyFunctionObject*>(function), asking_call);
#else
  call_slot(function) = asking_call;
#if PY_VERSION_HEX >= 0x030B0000
  reinterpret_cast<PyFunctionObject*>(function)->func_version = 0;  // what is specialised for it
  Py_SET_TYPE(function, asking_type());
#endif
#endif
}

PyObject* let_ask(PyObject*, PyObject* function) {
  return guarded([&] {
    check<TypeError>(is_python_function(function),
                     "_ask_overrides() needs a function that is written in Python");
    if (call_slot(function) == asking_call) return Py_NewRef(function);
    plain_call = call_slot(function);
    set_call_slot(function);
    return Py_NewRef(function);
  });
}

PyObject* does_ask(PyObject*, PyObject* function) {
  return PyBool_FromLong(is_python_function(function) && call_slot(function) == asking_call);
}

PyMethodDef functions[] = {
    {"_ask_overrides", let_ask, METH_O,
     "Makes a function that is written in Python ask modes and the classes of its arguments, by "
     "__torch_function__, before it runs. Returns the function."},
    {"_asks_overrides", does_ask, METH_O, "Whether `_ask_overrides` was called with a function."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_python_function(PyObject* o) { return PyObject_TypeCheck(o, &PyFunction_Type); }

void init_function_overrides(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
