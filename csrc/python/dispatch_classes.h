// __torch_dispatch__ of Tensor subclasses: their tensors have kDispatch, and the classes answer for
// the ops that the other layers call.
#pragma once

#include "ops/core/op.h"
#include "python/errors.h"

namespace taeda::py {

// Whether tensors of this Tensor subclass get kDispatch: it has a __torch_dispatch__, not the
// disabled one.
bool has_torch_dispatch(PyTypeObject* type);

// The classes of the call's tensors that have one, as a tuple: subclasses before their bases,
// otherwise from left to right. Empty while this thread asks no classes.
PyRef dispatching_types(const Call& c);

// What a kernel would have done to the results of a call that a class has answered: a view of a
// placeholder refers to it, and `target`, what an in-place op returns, has another version.
void finish_class_result(const Call& c, const Tensor* target, Value& result);

void init_dispatch_classes(PyObject* module);

}  // namespace taeda::py
