// The reductions that kernels compute, as a plain enum that any instruction set may include.
#pragma once

#include <cstdint>

namespace taeda {

enum class ReduceOp : uint8_t {
  Max,
  Min,
  AbsMax,
  AbsMin,
  Any,
  All,
  ArgMax,
  ArgMin,
  Prod,
  Moments,
  Sum  // and after it the others of SumOps (kernels/functors/reduction.h), by their places there
};

}  // namespace taeda
