// Which operations refuse an `out` (or a tensor changed in place) that shares memory with what they
// read, as PyTorch does.
#pragma once

#include "ops/op.h"

namespace taeda {

// Whether `out` and `in` share some elements but are not the very same ones. Only dense tensors are
// looked at: whether two strided ones meet would take too long to find out.
bool shares_in_part(const Tensor& out, const Tensor& in);

[[noreturn]] void refuse_shared_memory(const Op& op);

// RuntimeError where the operation must not write result `which` to `out`, which lies over an
// argument. Called before the operation computes; `check_resized_out` before `out` gets the size of
// the result, for it may reach an argument only then.
void check_out_memory(const Op& op, std::span<const Value> args, const Tensor& out, int which = 0);
void check_resized_out(const Op& op, std::span<const Value> args, const Tensor& out,
                       const Tensor& result, int which = 0);

}  // namespace taeda
