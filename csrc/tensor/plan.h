// Plan: how a loop iterates over several tensors of different layouts together.
//
// Shapes are broadcast, dimensions are ordered so that the output is written in memory order, and
// neighbours that are contiguous in every operand are coalesced. A few nested loops over byte
// strides remain.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace taeda {

struct Plan {
  static constexpr int kMaxOperands = 8;  // operand 0 is the output

  int count = 0;
  int64_t numel = 1;
  Dims sizes;  // fastest first
  char* data[kMaxOperands];
  DType dtype[kMaxOperands];
  Dims strides[kMaxOperands];  // in bytes, fastest first; 0 where broadcast
  uint32_t host_numbers = 0;   // bit k: operand k is one element, in the CPU's memory

  // Operands in order. Each must broadcast to `sizes`.
  Plan(DimsRef sizes, std::span<const Tensor* const> operands);
  // Of `to` and `from`, where that has other strides, and begins `first` elements later: strides
  // that no tensor can have, as they may be negative.
  Plan(const Tensor& to, const Tensor& from, DimsRef strides, int64_t first);

  // Byte offset of operand `k` at the start of `row`, the flat index over all dimensions but the
  // fastest.
  int64_t row_offset(int k, int64_t row) const {
    int64_t offset = 0;
    for (size_t d = 1; d < sizes.size(); ++d) {
      offset += row % sizes[d] * strides[k][d];
      row /= sizes[d];
    }
    return offset;
  }
  // Whether the operand is contiguous in iteration order.
  bool dense(int k) const;
  bool constant(int k) const;  // the same element throughout (broadcast)

 private:
  void order_and_coalesce(DimsRef given);
};

// The layout of a result: dense, with the dimensions in the order that they have in the inputs.
Dims result_strides(DimsRef sizes, std::span<const Tensor* const> inputs);

// How the memory of `out` relates to that of an input that is read in the same loop.
enum class Overlap {
  None,
  Same,
  Partial
};  // Same: element by element, so that a loop may work in place
Overlap overlap(const Tensor& out, const Tensor& in);
// RuntimeError where several elements of `out` share memory.
void check_no_internal_overlap(const Tensor& out);

}  // namespace taeda
