// Ops defined from Python, for taeda.library.
#pragma once

#include "python/errors.h"

namespace taeda::py {

void init_library(PyObject* module);

}  // namespace taeda::py
