// TorchDispatchMode: Python classes that answer for the ops that the other layers call.
#pragma once

#include "python/errors.h"

namespace taeda::py {

void init_dispatch_modes(PyObject* module);

}  // namespace taeda::py
