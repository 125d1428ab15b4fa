// The reductions that kernels compute, as a plain enum that any instruction set may include.
#pragma once

#include <cstdint>

namespace taeda {

enum class ReduceOp : uint8_t {
  Sum,
  NanSum,
  SumSquares,
  SumAbs,
  CountNonzero,
  Prod,
  Moments,
  Max,
  Min,
  AbsMax,
  AbsMin,
  Any,
  All,
  ArgMax,
  ArgMin
};

}  // namespace taeda
