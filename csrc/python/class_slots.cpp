// Slots of Python classes that Python code cannot set.
#include "python/module.h"

namespace taeda::py {
namespace {

// A class with a `__getattr__`, its own or inherited, has attributes read through a slot that looks
// for it each time, even where they are found without; the interpreter does not specialize such
// reads. nn.Module has one to be called by name. This makes reads plain again. Assigning
// `__getattr__` or `__getattribute__` to the class or to a base restores the slot.
PyObject* use_generic_getattr(PyObject*, PyObject* cls) {
  return guarded([&] {
    check<TypeError>(PyType_Check(cls) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(cls),
                                                            Py_TPFLAGS_HEAPTYPE),
                     "_use_generic_getattr(): expected a class, got ", type_name(cls));
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    type->tp_getattro = PyObject_GenericGetAttr;
    PyType_Modified(type);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_use_generic_getattr", use_generic_getattr, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_class_slots(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
