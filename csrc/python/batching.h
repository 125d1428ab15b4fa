// vmap's tensors: a Tensor subclass whose objects hide the first dimension of another tensor. The
// rules that say what each op does with them are Python's (taeda/_batching).
#pragma once

#include <optional>

#include "ops/op.h"
#include "python/errors.h"

namespace taeda::py {

bool is_batched_type(PyTypeObject* type);
bool is_batched(const Tensor& t);
bool has_batched(const Call& c);
// Throws where `o` is a batched tensor without dimensions: it would have been read as a number.
void check_not_read(PyObject* o);
// Throws where `out`, which an op is to write its result into, is batched.
void check_not_batched(const Op& op, const Tensor& out);

// The result of the op's rule. Nothing where the op is made of others, which are to be asked
// instead.
std::optional<Value> apply_rule(Call& c);

void init_batching(PyObject* module);

}  // namespace taeda::py
