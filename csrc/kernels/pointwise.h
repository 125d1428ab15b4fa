// Pointwise functions and copies, over tensors of any layout and dtype.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

struct Plan;  // tensor/plan.h

// The lists of functors in kernels/functors/.
enum class FunctorList : uint8_t {
  Arithmetic,
  Rounding,
  Logic,
  Math,
  Special,
  Bessel,
  Polynomial,
  Activation,
  Loss
};

// What a functor makes of dtypes, the same on every device.
struct FunctorTypes {
  bool supported[kNumDTypes] = {};  // what operands can be computed in
  uint8_t result[kNumDTypes] = {};  // the dtype that comes of each of those
  bool bool_first = false;          // the first operand is a bool whatever the dtype (where)
};

struct Functor {
  FunctorList list;
  uint8_t index;              // in its list
  const FunctorTypes* types;  // the CPU's kernels find their loops by it
};
Functor find_functor(FunctorList list, int index);

// What of a functor is computed: its value, or from kDerivative + k on the gradient of operand k.
// Operands of a gradient are the result's gradient, the functor's operands and its result; those
// that the derivative does not read may be anything.
enum PointwisePart : int { kValue, kDerivative };

// The inputs of contiguous(): n elements each, or one of any dtype that stands for all.
struct ContiguousInputs {
  static constexpr int kMost = 7;
  const void* data[kMost];
  uint32_t repeated = 0;  // bit k: one element, of dtype[k]
  DType dtype[kMost];
};

struct PointwiseKernels {
  // Operand 0 of the plan is the result. `compute`: the dtype that operands are converted to. Only
  // what a kernel reads is memory of its device or Plan::host_numbers; other operands are anything.
  KernelFn<void(const Plan& plan, const Functor& f, int part, DType compute)> run;
  // The same without a plan: out[i] of n contiguous elements in the dtypes of the loop. At most
  // kMostRepeated elements where an input is repeated. Not on every device.
  KernelFn<void(const Functor& f, int part, DType compute, void* out, const ContiguousInputs& in,
                int64_t n)>
      contiguous;
  // Operand 0 of the plan from operand 1, with conversion; from a number in the CPU's memory
  // (Plan::host_numbers), without.
  KernelFn<void(const Plan& plan)> copy;
  // Between contiguous memory that does not overlap.
  KernelFn<void(void* to, const void* from, int64_t bytes)> copy_bytes;
  KernelFn<void(void* to, int64_t bytes)> clear;

  static const PointwiseKernels cpu;
};

constexpr int64_t kMostRepeated = 64;

}  // namespace taeda
