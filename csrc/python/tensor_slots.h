// The parts of the Tensor class, each in its own file; module.cpp puts them together.
#pragma once

#include <vector>

#include "python/errors.h"
#include "tensor/tensor.h"

namespace taeda::py {

std::vector<PyType_Slot>
tensor_slots();              // operators, conversions and the subscript protocol (tensor_slots.cpp)
void init_tensor_methods();  // tensor_methods.cpp
void init_tensor_attributes();  // tensor_attributes.cpp

// x[...] and x[...] = v (indexing.cpp).
PyObject* get_item(PyObject* self, PyObject* index);
int set_item(PyObject* self, PyObject* index, PyObject* value);

// Tensor(...), the legacy constructor (tensor_new.cpp).
PyObject* legacy_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

// The only element as a Python number (tensor_methods.cpp).
PyObject* item_object(const Tensor& t);

// Tensor._version (tensor_attributes.cpp).
PyObject* version_number(const Tensor& t);

}  // namespace taeda::py
