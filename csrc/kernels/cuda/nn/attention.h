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

// Matrix `at` of a batch, or the mask of its scores.
template <class M> __device__ M matrix_of(const AttentionShape& s, M m, int at) {
  const auto heads = static_cast<int>(s.heads);
  if (m.data) m.data += at / heads * m.batch + at % heads * m.head;
  return m;
}
__device__ inline bool is_hidden(const AttentionShape& s, int64_t query, int64_t key) {
  return key >= s.keys || (s.causal && key > query);
}
// What is added to the score of a pair that may be outside.
template <class S>
__device__ S mask_at(const AttentionShape& s, const AttentionMask<S>& mask, int64_t query,
                     int64_t key) {
  if (query >= s.queries || key >= s.keys) return S(0);
  return mask.data[query * mask.row + key * mask.column];
}

constexpr int kLanesOfDots = 8;  // threads for each row
// f.dots, kAtOnce elements by a load.
template <class T, int kAtOnce>
__global__ void row_dots(const __grid_constant__ FlashBackward<T> f) {
  struct alignas(sizeof(T) * kAtOnce) Elements {
    T at[kAtOnce];
  };
  using S = AttentionScore<T>;
  const int64_t row = group_index(), query = row % f.s.queries;
  const bool inside = row < f.s.batch * f.s.heads * f.s.queries;
  const auto at = static_cast<int>(row / f.s.queries);
  const auto all_out = matrix_of(f.s, f.out, at), all_g = matrix_of(f.s, f.g, at);
  S sum = 0;
  for (int64_t c = threadIdx.x * kAtOnce; inside && c < f.s.value_size;
       c += kLanesOfDots * kAtOnce) {
    const auto out = *reinterpret_cast<const Elements*>(all_out.data + query * all_out.row + c);
    const auto g = *reinterpret_cast<const Elements*>(all_g.data + query * all_g.row + c);
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
// The first on devices of capability 9.0.
inline bool has_warpgroups() { return used_device().capability == 90; }
template <class T> void attend_by_warpgroups(const FlashForward<T>& f);

}  // namespace taeda::cuda
