// __torch_function__: how Python types take part in ops. Subclasses of Tensor keep their type
// through ops by the default Tensor.__torch_function__; other types may define one of their own.
#pragma once

#include "python/errors.h"

namespace taeda::py {

// Whether tensors of this Tensor subclass are to be marked with kOverride: true unless its
// __torch_function__ is the disabled one.
bool overrides_functions(PyTypeObject* type);

// Calls the __torch_function__ of the arguments that have one. nullptr with no exception set: there
// was none. `args` are positional arguments followed by the values of `kwnames`.
PyObject* call_override(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames);

// Whether overrides are switched off in this thread now.
bool overrides_disabled();

void init_overrides(PyObject* module);

}  // namespace taeda::py
