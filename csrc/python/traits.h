// The traits of ops (ops/core/traits.h) as Python objects.
#pragma once

#include "ops/core/op.h"
#include "python/errors.h"

namespace taeda::py {

// The traits of an op by name. A trait with several values is a str ("lower"), the rule of vmap a
// tuple of its form and ranks; None where a row leaves it out.
PyObject* traits_dict(const Op& op);

void init_traits(PyObject* module);

}  // namespace taeda::py
