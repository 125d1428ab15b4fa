// The named tuples that ops with several results return: taeda.return_types.max and the like.
#pragma once

#include <string>
#include <vector>

#include "python/errors.h"

namespace taeda::py {

// A tuple type with these fields, made once per name and kept in _C.return_types.
PyObject* named_tuple_type(const std::string& name, const std::vector<std::string>& fields);
PyObject* make_named_tuple(PyObject* type, const std::vector<PyRef>& items);

void init_results(PyObject* module);

}  // namespace taeda::py
