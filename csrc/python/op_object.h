// The Python objects of ops: called by op_callable.cpp, described by op_attributes.cpp.
#pragma once

#include "python/op_callable.h"

namespace taeda::py {

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpTable* table;
  PyObject* dict;
};
inline const OpTable& table_of(PyObject* o) { return *reinterpret_cast<OpObject*>(o)->table; }

extern PyTypeObject* OpFunctionType;
extern PyTypeObject* OpMethodType;

// A type of such objects with all their attributes; `method`: found on an object, it is bound.
PyTypeObject* make_op_type(const char* name, bool method);

}  // namespace taeda::py
