// taeda.Tensor: the Python object of a tensor.
//
// A TensorImpl has at most one PyObject, for as long as either lives. While Python refers to the
// object, it holds a count of the impl. When the last Python reference goes and C++ still holds the
// impl, a plain object dies (a new one can be made that nobody can tell apart), but one that
// carries something of its own (a subclass, attributes, weak references) stays: now the impl holds
// it (TensorImpl::python_owned), until wrap() hands it out again.
#pragma once

#include "python/errors.h"
#include "tensor/tensor.h"

namespace taeda::py {

struct TensorObject {
  PyObject_HEAD Tensor tensor;  // counted, except while the impl owns this object
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* TensorType;

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == TensorType; }
inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == TensorType || PyType_IsSubtype(Py_TYPE(o), TensorType);
}
// `o` must be a tensor.
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }

// The tensor's object, a new reference; None for an undefined tensor.
PyObject* wrap(Tensor t);
// The flags that a tensor has for its class: kOverride, kDispatch.
uint32_t class_flags(PyTypeObject* type);
// An object of a Tensor subclass for a tensor that has no object yet.
PyObject* wrap_as(Tensor t, PyTypeObject* type);

// Adds descriptors from other files to Tensor's dict during module initialisation. The tables must
// be static.
void add_methods(PyMethodDef* table);
void add_getset(PyGetSetDef* table);

// Exposes a tensor's autograd data (hooks that refer back to it) to the garbage collector. Both may
// be unset. Called only while the Python object holds the only reference to the impl.
extern int (*traverse_autograd)(TensorImpl* t, visitproc visit, void* arg);
extern void (*clear_autograd)(TensorImpl* t);

void init_tensor_type(PyObject* module);

}  // namespace taeda::py
