// vmap's tensors: a Tensor subclass whose objects hide the first dimension of another tensor. The
// batching rules of the ops are in Python (taeda/_batching).
#pragma once

#include <optional>

#include "ops/core/op.h"
#include "python/errors.h"

namespace taeda::py {

bool is_batched_type(PyTypeObject* type);
bool is_batched(const Tensor& t);
bool has_batched(const Call& c);
// Throws if `o` is a batched zero-dim tensor, which cannot be converted to a number.
void check_not_read(PyObject* o);
// Throws if `out`, the destination of a result, is batched.
void check_not_batched(const Op& op, const Tensor& out);

// Applies the op's batching rule. Returns nothing for composite ops: the rules of the ops that they
// call apply.
std::optional<Value> apply_rule(Call& c);

void init_batching(PyObject* module);

}  // namespace taeda::py
