// Helpers of the indexing ops: checked indices, and targets of in-place forms.
#pragma once

#include "kernels/index.h"
#include "ops/core/shape_util.h"

namespace taeda {

// The tensor that an op with in-place and out= forms writes into: `self` itself, `out`, or a copy
// of `self`.
inline Tensor target_of(Call& c, const Tensor& self) {
  if (!c.out.defined()) return raw_clone(self);
  if (c.out.is(self)) {
    for (size_t d = 0; d < self.sizes().size(); ++d) {
      check(self.strides()[d] != 0 || self.sizes()[d] <= 1,
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. "
            "Please clone() the tensor before performing the operation.");
    }
    return self;
  }
  write_out(c.op, c.out, self);
  return c.out;
}

// `t`, or a copy if it shares memory with the target that is about to be written.
inline Tensor without_overlap(const Tensor& t, const Tensor& target) {
  return t.storage() == target.storage() ? raw_clone(t) : t;
}

inline bool is_index_dtype(DType d) { return d == DType::Int64 || d == DType::Int32; }

// Contiguous int64 indices.
inline Tensor index_values(const Tensor& index) {
  return raw_contiguous(raw_cast(index, DType::Int64));
}

// The first index outside [low, high), or nothing. Waits for the device.
inline std::optional<int64_t> find_outside(const Tensor& index, int64_t low, int64_t high) {
  return kernels<IndexKernels>(index.device())
      .find_outside(index.data_as<int64_t>(), index.numel(), low, high);
}

// Whether the device tells of indices that are out of range later, instead of waiting for them.
inline bool tells_later(Device device) {
  return static_cast<bool>(kernels<IndexKernels>(device).keep_inside);
}

// Contiguous int64 indices for kernels that look for those outside of [low, high) themselves, and
// of a device that tells later, a copy with none outside.
inline Tensor kept_inside(const Tensor& index, int64_t low, int64_t high) {
  if (low >= high || !tells_later(index.device())) return index;
  Tensor kept = empty(index.sizes(), index.options());
  kernels<IndexKernels>(index.device())
      .keep_inside(index.data_as<int64_t>(), index.numel(), low, high, kept.data_as<int64_t>());
  return kept;
}

// The same for kernels that do not look: refuse(i), which throws, is called for an index outside.
template <class F> Tensor inside(const Tensor& index, int64_t low, int64_t high, F&& refuse) {
  if (low < high && tells_later(index.device())) return kept_inside(index, low, high);
  if (const auto bad = find_outside(index, low, high)) refuse(*bad);
  return index;
}

// Coordinates of the true elements of a bool or byte mask: one int64 vector for each dimension.
TensorList mask_indices(const Tensor& mask);
// The same as one vector of flat row-major indices.
Tensor mask_flat_indices(const Tensor& mask);

}  // namespace taeda
