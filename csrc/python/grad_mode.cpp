// The base class of taeda.no_grad and taeda.enable_grad. In C++ because blocks around small work
// are entered so often that Python's __enter__ and __exit__ would be noticeable.
#include "ops/core/op.h"
#include "python/autograd.h"
#include "python/module.h"

namespace taeda::py {
namespace {

struct Switch {
  PyObject_HEAD bool before;
};

PyObject *on_name, *decorate_name;

// A context manager or, as a bare decorator, the wrapped function.
PyObject* new_switch(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* func = Py_None;
  if (PyTuple_GET_SIZE(args) || kwargs) {
    static const char* names[] = {"func", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &func))
      return nullptr;
  }
  if (func == Py_None) return type->tp_alloc(type, 0);
  return python_call(PyObject_CallMethodOneArg, reinterpret_cast<PyObject*>(type), decorate_name,
                     func);
}

PyObject* enter(PyObject* self, PyObject*) {
  PyObject* on = PyObject_GetAttr(self, on_name);
  if (!on) return nullptr;
  reinterpret_cast<Switch*>(self)->before = GradMode::enabled();
  GradMode::set(on == Py_True);
  Py_DECREF(on);
  Py_RETURN_NONE;
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  GradMode::set(reinterpret_cast<Switch*>(self)->before);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_grad_mode(PyObject* module) {
  on_name = must(PyUnicode_InternFromString("_on"));
  decorate_name = must(PyUnicode_InternFromString("_decorate"));
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(new_switch)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{"taeda._C._GradSwitch", sizeof(Switch), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  must(PyModule_AddObject(module, "_GradSwitch", must(PyType_FromSpec(&spec))));
}

}  // namespace taeda::py
