// Which operations refuse an `out` (or a tensor changed in place) that shares memory with what they
// read, as PyTorch does.
#pragma once

#include "ops/core/op.h"

namespace taeda {

// Whether `out` and `in` share some elements but are not the very same ones. Considers dense
// tensors only: exact overlap of strided ones is too expensive to compute.
bool shares_in_part(const Tensor& out, const Tensor& in);

[[noreturn]] void refuse_shared_memory(const Op& op);

// RuntimeError where the operation must not write result `which` to `out`, because it overlaps an
// argument. Called before the operation computes; `check_resized_out` is called before `out` is
// resized to the result, which may make it overlap an argument.
void check_out_memory(const Op& op, std::span<const Value> args, const Tensor& out, int which = 0);
void check_resized_out(const Op& op, std::span<const Value> args, const Tensor& out,
                       const Tensor& result, int which = 0);

// Gives `out` the sizes of a result, and warns if that changes a shape that it had.
void resize_out(const Tensor& out, DimsRef sizes);

}  // namespace taeda
