// Optimizer steps: one call updates every parameter of a group.
#pragma once

#include <array>
#include <span>
#include <variant>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kernels/optim_steps.h"

namespace taeda {

using OptimStep = std::variant<SgdStep, AdamStep, AdamaxStep, NAdamStep, RAdamStep, RmsPropStep,
                               AdagradStep, AdadeltaStep, RpropStep, AsgdStep>;

// One parameter's step: n elements of the parameter, of its gradient (which is only read) and of
// its states, in memory order; complex numbers count as pairs. Null: a state that is not used.
struct OptimUpdate {
  static constexpr size_t kOperands = kMostOperands, kGradient = 1;

  std::array<void*, kOperands> data{};
  std::array<DType, kOperands> dtypes{};  // real; computed in float64 if the parameter's is that
  int64_t n = 0;
  OptimStep step;
};

struct OptimKernels {
  // `updates`: host memory, all of one rule. Operands of different updates may overlap: they are
  // then made in order.
  KernelFn<void(std::span<const OptimUpdate> updates)> step;

  static const OptimKernels cpu;
};

}  // namespace taeda
