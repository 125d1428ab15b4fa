// What the kernels of attention have in common. Those of attention.cu take everything; those of
// attention_mma*.cu take half precision and are faster.
#pragma once

#include "kernels/attention.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/group.h"

namespace taeda::cuda {

constexpr double kLog2E = 1.4426950408889634;  // exponentials are powers of 2

template <class T> struct FlashForward {
  using S = AttentionScore<T>;
  AttentionShape s;
  AttentionMatrices<const T> q, k, v;
  AttentionMask<S> mask;
  AttentionMatrices<T> out;
  S* log_sums;
};
template <class T> struct FlashBackward {
  using S = AttentionScore<T>;
  AttentionShape s;
  AttentionMatrices<const T> g, q, k, v;
  AttentionMask<S> mask;
  AttentionMatrices<const T> out;
  const S* log_sums;
  AttentionMatrices<T> dq, dk, dv;
  S* dots;  // of each row of out with its gradient
};

// Row `row` of matrix `at` of a batch.
template <class M>
__device__ auto* row_of(const AttentionShape& s, const M& m, int64_t at, int64_t row) {
  return m.data + at / s.heads * m.batch + at % s.heads * m.head + row * m.row;
}
__device__ inline bool is_hidden(const AttentionShape& s, int64_t query, int64_t key) {
  return key >= s.keys || (s.causal && key > query);
}
// What is added to the score of a pair that may be outside.
template <class S>
__device__ S mask_at(const AttentionShape& s, const AttentionMask<S>& mask, int64_t at,
                     int64_t query, int64_t key) {
  if (query >= s.queries || key >= s.keys) return S(0);
  return row_of(s, mask, at, query)[key * mask.column];
}

constexpr int kLanesOfDots = 8;  // threads for each row
// f.dots, kAtOnce elements by a load.
template <class T, int kAtOnce>
__global__ void row_dots(const __grid_constant__ FlashBackward<T> f) {
  struct alignas(sizeof(T) * kAtOnce) Elements {
    T at[kAtOnce];
  };
  using S = AttentionScore<T>;
  const int64_t row = group_index(), at = row / f.s.queries, query = row % f.s.queries;
  const bool inside = at < f.s.batch * f.s.heads;
  S sum = 0;
  for (int64_t c = threadIdx.x * kAtOnce; inside && c < f.s.value_size;
       c += kLanesOfDots * kAtOnce) {
    const auto out = *reinterpret_cast<const Elements*>(row_of(f.s, f.out, at, query) + c);
    const auto g = *reinterpret_cast<const Elements*>(row_of(f.s, f.g, at, query) + c);
    for (int i = 0; i < kAtOnce; ++i) sum += convert<S>(out.at[i]) * convert<S>(g.at[i]);
  }
  sum = group_sum(sum);
  if (inside && threadIdx.x == 0) f.dots[row] = sum;
}
template <int kAtOnce, class T> void find_dots(const FlashBackward<T>& f) {
  const dim3 block(kLanesOfDots, kThreads / kLanesOfDots);
  launch(row_dots<T, kAtOnce>, blocks_of(f.s.batch * f.s.heads * f.s.queries, block), block, 0, f);
}

// On tensor cores, if they can be used: whether they were.
template <class T> bool attend_on_tensor_cores(const FlashForward<T>& f);
template <class T> bool backward_on_tensor_cores(const FlashBackward<T>& f);

}  // namespace taeda::cuda
