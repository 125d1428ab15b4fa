// Schema text -> Op: "sum(self: Tensor, dim: int[]? = None, keepdim: bool = False, *, dtype: dtype?
// = None) -> Tensor".
#pragma once

#include "ops/core/op.h"

namespace taeda {

Op parse_schema(std::string_view text);  // Error that quotes the text where it is malformed

}  // namespace taeda
