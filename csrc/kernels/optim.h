// Optimizer steps: one call updates every parameter of a group.
#pragma once

#include <array>
#include <span>
#include <variant>

#include "base/dtype.h"
#include "kernels/functors/optim.h"
#include "kernels/kernels.h"

namespace taeda {

// A rule with the numbers of a step. The index is its place in the list.
template <class... Rules> std::variant<Rules...> any_of(portable::List<Rules...>);
using OptimStep = decltype(any_of(portable::OptimRules{}));

// One parameter's step: n elements of the parameter, of its gradient (which is only read, unless it
// was scaled) and of its states, in memory order; complex numbers count as pairs. Null: a state
// that is not used.
struct OptimUpdate {
  static constexpr size_t kOperands = kMostOperands, kGradient = 1;

  std::array<void*, kOperands> data{};
  std::array<DType, kOperands> dtypes{};  // real; computed in float64 if the parameter's is that
  int64_t n = 0;
  OptimStep step;
  // Where the device counts the steps: the count, the rule's other numbers, and what the learning
  // rate is multiplied by, or null. `step` has what it has whatever the count is.
  float* count = nullptr;
  std::array<float*, 2> numbers{};
  const float* rate = nullptr;
  // In the device's memory, of losses that were scaled: the gradient is divided by *grad_scale
  // before, and written; where *found_inf is not 0, nothing is done. Null: they are as they should
  // be.
  const float* grad_scale = nullptr;
  const float* found_inf = nullptr;
};

struct OptimKernels {
  // `updates`: host memory, all of one rule. Operands of different updates may overlap: they are
  // then made in order.
  KernelFn<void(std::span<const OptimUpdate> updates)> step;
  // The same of updates with counts, which go up before. Null where neither takes counts, scales
  // and overflows.
  KernelFn<void(std::span<const OptimUpdate> updates)> counted_step;

  static const OptimKernels cpu;
};

}  // namespace taeda
