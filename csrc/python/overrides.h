// __torch_function__: how Python types take part in ops. Subclasses of Tensor keep their type
// through ops by the default Tensor.__torch_function__; other types may define one of their own.
#pragma once

#include "python/errors.h"

namespace taeda::py {

// Whether tensors of this Tensor subclass are to be marked with kOverride: true unless its
// __torch_function__ is the disabled one.
bool overrides_functions(PyTypeObject* type);

// Modes (taeda.overrides.TorchFunctionMode) that any thread is in. Where there are some, every call
// asks call_override first.
extern int function_modes_entered;

// Asks the thread's innermost mode, then the __torch_function__ of the arguments that have one.
// nullptr with no exception set: there was none. `args` are positional arguments followed by the
// values of `kwnames`.
PyObject* call_override(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames);

// The answer of the modes to a function of this module that is no op; nullptr where there is none.
PyObject* ask_modes(const char* function, PyObject* args, PyObject* kwargs);

// Whether overrides are switched off in this thread now.
bool overrides_disabled();

void init_overrides(PyObject* module);

}  // namespace taeda::py
