// softmax(scale q k^T + mask) v and its gradients, without the scores of all queries in memory
// together.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

// A matrix for each (batch, head), and how far these and the rows are apart. The elements of a row
// lie one after the other.
template <class T> struct AttentionMatrices {
  T* data;
  int64_t batch, head, row;
};

struct AttentionShape {
  int64_t batch, heads, queries, keys, size, value_size;
  double scale;
  bool causal;  // query i sees the keys up to i
};

// Added to the scores; a step of 0 repeats. Null data: no mask.
template <class T> struct AttentionMask {
  const T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
};

template <class T> struct AttentionKernels {  // T: float, double
  using In = AttentionMatrices<const T>;
  using Out = AttentionMatrices<T>;

  KernelFn<void(const AttentionShape& s, In q, In k, In v, AttentionMask<T> mask, Out out)>
      attention;
  // g: the gradient of the result. dq, dk and dv start as zeros.
  KernelFn<void(const AttentionShape& s, In g, In q, In k, In v, AttentionMask<T> mask, Out dq,
                Out dk, Out dv)>
      backward;

  static const AttentionKernels cpu;
};

}  // namespace taeda
