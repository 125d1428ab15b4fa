// softmax(scale q k^T + mask) v and its gradients, without the scores of all queries in memory
// together.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/half.h"
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

// What scores and masks of T are: T itself, but float of half precision.
template <class T>
using AttentionScore =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// The same for devices that take half precision as it is, and keep of each row the logarithm of the
// sum of its exponentials, so that the gradients need not find it again. A device that has these
// needs no AttentionKernels; the CPU has none.
template <class T> struct FlashAttentionKernels {  // T: float, double, Half, BFloat16
  using In = AttentionMatrices<const T>;
  using Out = AttentionMatrices<T>;
  using S = AttentionScore<T>;

  // log_sums: one for each query, (batch, head, query); +inf of a query that sees no key.
  KernelFn<void(const AttentionShape& s, In q, In k, In v, AttentionMask<S> mask, Out out,
                S* log_sums)>
      forward;
  // out and log_sums: what `forward` gave. All of dq, dk and dv is written.
  KernelFn<void(const AttentionShape& s, In g, In q, In k, In v, AttentionMask<S> mask, In out,
                const S* log_sums, Out dq, Out dk, Out dv)>
      backward;

  static const FlashAttentionKernels cpu;
};
template <class T> inline constinit const FlashAttentionKernels<T> FlashAttentionKernels<T>::cpu{};

}  // namespace taeda
