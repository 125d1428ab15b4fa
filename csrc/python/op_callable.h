// The ops as Python callables: `_C.ops.softmax` (a function) and Tensor.softmax (a method).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/arguments.h"

namespace taeda::py {

// All overloads of a name.
struct OpTable {
  std::string name;
  std::vector<Signature> overloads;
  size_t self_at = 0;            // index of a method's self among the arguments: x.where(cond, y)
                                 // is where(cond, x, y)
  PyObject* function = nullptr;  // _C.ops.<name>
  PyObject* method = nullptr;    // Tensor.<name>, where there is one
  PyObject* return_type = nullptr;  // the named tuple of its results, where it has several
};

const OpTable* find_table(std::string_view name);  // nullptr where there is no such op

// Calls an op with Python arguments. `quiet`: if no overload matches, returns nullptr without
// setting an exception.
PyObject* call_table(const OpTable& table, const PyArgs& call, bool quiet = false);

// The same for C++ callers within csrc/python: a method call such as call_method("select", {self,
// dim, index}).
PyObject* call_method(const char* name, std::initializer_list<PyObject*> args);

// Runs an op that changes its arguments, which are already Values. Returns false, having done
// nothing, if Python code overrides the op.
bool run_values(const Op& op, Values& values);

// The Python object of an op's results.
PyObject* result_object(Value&& v, const OpTable* table = nullptr);

// The callable of an op defined after the module was loaded.
PyObject* op_function(const Op& op);

void init_ops(PyObject* module);

}  // namespace taeda::py
