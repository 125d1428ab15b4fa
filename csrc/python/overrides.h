// __torch_function__: how Python types override ops. Subclasses of Tensor keep their type through
// ops by the default Tensor.__torch_function__; other types may define one of their own.
#pragma once

#include <vector>

#include "python/errors.h"

namespace taeda::py {

// Whether tensors of this Tensor subclass get kOverride: true unless its __torch_function__ is the
// disabled one.
bool overrides_functions(PyTypeObject* type);

// Number of active modes (taeda.overrides.TorchFunctionMode) in all threads. If not 0, every call
// tries call_override first.
extern int function_modes_entered;

// Calls the thread's innermost mode, or the __torch_function__ of the arguments that have one.
// nullptr without an exception: there was none. `args` are positional arguments followed by the
// values of `kwnames`.
PyObject* call_override(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames);

// Lets active modes handle a function of this module that is not an op; nullptr if there are none.
PyObject* ask_modes(const char* function, PyObject* args, PyObject* kwargs);

// Whether a type has a __torch_function__, of its own or inherited.
bool has_torch_function(PyTypeObject* type);

// Whether overrides are disabled in this thread.
bool overrides_disabled();

// While one lives, this thread asks no __torch_function__, of classes or of modes.
class OverridesOff {
 public:
  OverridesOff();
  OverridesOff(const OverridesOff&) = delete;
  OverridesOff& operator=(const OverridesOff&) = delete;
  ~OverridesOff();

 private:
  std::vector<PyObject*> modes_;
};

void init_overrides(PyObject* module);

// function_overrides.cpp
bool is_python_function(PyObject* o);
void init_function_overrides(PyObject* module);

}  // namespace taeda::py
