// One optimizer step over one parameter's memory: element by element, in one pass.
#pragma once

#include "kernels/cpu/simd/pick.h"
#include "kernels/functors/optim.h"

namespace taeda::cpu {

// `step` is the rule's struct; operands[0] is the parameter, [1] the gradient, then the states:
// contiguous arrays of n floats or doubles.
using StepLoop = void (*)(const StepBase& step, void* const* operands, int64_t n);

struct OptimTable {
  const StepLoop (*loops)[2];  // of each rule in OptimRules, for float and for double
};

namespace simd {
TAEDA_TABLES(OptimTable, optim_table)
}

}  // namespace taeda::cpu
