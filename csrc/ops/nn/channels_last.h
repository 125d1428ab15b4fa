// Tensors (N, C, *) in channels_last, which kernels take as (N, *, C).
#pragma once

#include <algorithm>

#include "ops/core/half.h"

namespace taeda {

// Also of tensors that are not dense.
inline bool is_channels_last(const Tensor& t) {
  return t.memory_format() != MemoryFormat::Contiguous;
}

// How kernels take the tensors of an op and give them: with channels as the last dimension, or as
// they are.
struct ChannelLayout {
  bool last = false;

  Dims moved(DimsRef given) const {
    Dims d(given);
    if (last) std::rotate(d.begin() + 1, d.begin() + 2, d.end());
    return d;
  }
  Dims moved_back(DimsRef given) const {
    Dims d(given);
    if (last) std::rotate(d.begin() + 1, d.end() - 1, d.end());
    return d;
  }
  // An argument as a kernel takes it, and what a kernel made as the op gives it; without autograd.
  Tensor operand(const Tensor& t, DType dtype) const {
    if (!last) return prepared(t, dtype);
    return prepared(
        from_storage(t.storage(), moved(t.sizes()), moved(t.strides()), t.offset(), t.dtype()),
        dtype);
  }
  Tensor result(const Tensor& made, DType dtype) const {
    const Tensor t = finished(made, dtype);
    if (!last) return t;
    return from_storage(t.storage(), moved_back(t.sizes()), moved_back(t.strides()), t.offset(),
                        dtype);
  }
};

}  // namespace taeda
