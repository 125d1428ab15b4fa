// Running functors and copies over a Plan: its dimensions, cut into launches whose elements 32 bits
// can number.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/common/index.h"
#include "kernels/pointwise.h"
#include "tensor/plan.h"

namespace taeda::cuda {

// How a thread finds N neighbouring elements of an operand.
enum class Access : uint8_t {
  Flat,   // a vector: contiguous and aligned
  Inner,  // a vector, whose place depends on the outer dimensions
  Same,   // one element for all N
  Any,    // N places
};

struct PointwiseOperand {
  char* data;  // null: `number`, in the dtype that is computed in
  DType dtype;
  Access access;
  int64_t strides[kMostDims];  // in bytes
  alignas(16) char number[16];
};

struct LoopShape {
  uint32_t n;
  int dims;
  Divisor sizes[kMostDims];

  // Of element i, or of the last one where there are not as many.
  __device__ int64_t offset(const PointwiseOperand& o, uint32_t i) const {
    i = i < n ? i : n - 1;
    int64_t offset = 0;
#pragma unroll 1
    for (int d = 0; d < dims; ++d) offset += sizes[d].divide(i) * o.strides[d];
    return offset;
  }
};
template <int N> struct PointwiseLoop : LoopShape {
  PointwiseOperand operand[N];
};

struct alignas(16) HostNumber {
  char bytes[16];
};

// A part of a plan as a launch takes it: dimensions [0, dims), of which the last has `last`
// elements, at offsets from the operands' beginnings.
struct PlanPart {
  const Plan& plan;
  size_t dims;
  int64_t last;
  int64_t offsets[Plan::kMaxOperands];
  const HostNumber* numbers;  // of operands without memory

  int64_t numel() const;
};
using RunPart = void (*)(const PlanPart& part);
// Runs parts that cover the plan.
void run_in_parts(const Plan& plan, const HostNumber* numbers, RunPart run);

// How operand k of a part is read, `n` neighbours at a time.
Access access_of(const PlanPart& part, int k, int64_t n);

// Of N operands, whose threads compute `n` neighbours.
template <int N> PointwiseLoop<N> loop_of(const PlanPart& part, int64_t n) {
  PointwiseLoop<N> l;
  l.n = static_cast<uint32_t>(part.numel());
  l.dims = static_cast<int>(part.dims);
  for (size_t d = 0; d < part.dims; ++d)
    l.sizes[d] = Divisor(d + 1 < part.dims ? part.plan.sizes[d] : part.last);
  for (int k = 0; k < N; ++k) {
    PointwiseOperand& o = l.operand[k];
    o.data = part.plan.data[k] ? part.plan.data[k] + part.offsets[k] : nullptr;
    o.dtype = part.plan.dtype[k];
    o.access = access_of(part, k, n);
    for (size_t d = 0; d < part.dims; ++d) o.strides[d] = part.plan.strides[k][d];
    if (!part.plan.data[k]) std::memcpy(o.number, part.numbers[k].bytes, sizeof o.number);
  }
  return l;
}

struct FunctorKernel {
  RunPart run = nullptr;
  DType dtypes[Plan::kMaxOperands] = {};  // that operands have, or half types for float32
};
// The kernels of one functor, by the dtype that is computed in; gradients in float32 and float64.
struct FunctorKernels {
  FunctorKernel value[12] = {};
  FunctorKernel gradient[3][2] = {};
};

// Operand 0 of a plan from operand 1, with conversion.
void copy(const Plan& plan);

}  // namespace taeda::cuda
