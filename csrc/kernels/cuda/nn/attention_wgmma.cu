// Attention of half precision by warpgroups, on sm_90a (FlashAttention-3, Shah et al. 2024): as in
// attention_mma.cu, but each warpgroup has 64 queries, and while the weights of a tile are found
// the tensor cores multiply those of the tile before with its values.
#include "kernels/cuda/nn/attention_wgmma.h"

namespace taeda::cuda {
namespace {

template <int D_, int kGroups_, int kKeys_, int kBlocks_, bool kTogether_ = false>
struct ForwardSizes {
  static constexpr bool kTogether = kTogether_;
  static constexpr int D = D_, kKeys = kKeys_, kBlocks = kBlocks_;
  static constexpr int kThreads = kGroups_ * kWarpgroup, kQueries = kGroups_ * 64;
  using QueryRows = Panels<D, kQueries>;
  using KeyRows = Panels<D, kKeys>;
  static constexpr int kSharedBytes = QueryRows::kBytes + 4 * KeyRows::kBytes;
};

// kScored: scores are not the scaled products alone, or the scale is not positive.
template <class T, class Sizes, bool kScored>
__global__ void __launch_bounds__(Sizes::kThreads, Sizes::kBlocks)
    attend_by_warpgroups(const __grid_constant__ FlashForward<T> f, int parts) {
  constexpr int D = Sizes::D, kKeys = Sizes::kKeys, kThreads = Sizes::kThreads;
  using QueryRows = typename Sizes::QueryRows;
  using KeyRows = typename Sizes::KeyRows;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  // The last first: under a causal mask they take longest.
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * Sizes::kQueries;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  const SharedAddress query_tile = shared_address(memory),
                      key_tiles = query_tile + QueryRows::kBytes,
                      value_tiles = key_tiles + 2 * KeyRows::kBytes;
  const auto all_keys = static_cast<int>(s.keys);
  const auto seen = [&](int queries) {  // tiles of keys, by the queries before `queries`
    return ((s.causal && queries < all_keys ? queries : all_keys) + kKeys - 1) / kKeys;
  };
  const int tiles = seen(first + Sizes::kQueries),
            own_tiles = seen(first + (own_rows / 64 + 1) * 64);

  const auto k = matrix_of(s, f.k, at), v = matrix_of(s, f.v, at);
  const auto keys_at = [&](int tile) { return key_tiles + tile % 2 * KeyRows::kBytes; };
  const auto values_at = [&](int tile) { return value_tiles + tile % 2 * KeyRows::kBytes; };
  const auto copy_keys = [&](int tile) {
    if (tile < tiles)
      copy_rows<KeyRows, kKeys, kThreads>(keys_at(tile), k, tile * kKeys, s.keys, s.size);
  };
  // The values of a tile are needed with the keys of the next.
  const auto copy_values = [&](int tile) {
    if (tile < tiles)
      copy_rows<KeyRows, kKeys, kThreads>(values_at(tile), v, tile * kKeys, s.keys, s.value_size);
    copy_keys(tile + 1);
    commit_copies();
  };
  copy_rows<QueryRows, Sizes::kQueries, kThreads>(query_tile, matrix_of(s, f.q, at), first,
                                                  s.queries, s.size);
  copy_keys(0);
  commit_copies();
  copy_values(0);
  wait_for_copies<1>();
  publish_copies();
  __syncthreads();
  const LeftRows<D> queries(query_tile + Panel::bytes(own_rows), QueryRows::kPanelBytes);

  const auto mask = matrix_of(s, f.mask, at);
  const float power = static_cast<float>(s.scale * kLog2E), unit = kScored ? 1 : power;
  Softmax<1> softmax;
  Sums<1, D / 8> out;
  Sums<1, kKeys / 8> scores;
  out.clear();
  const auto begin_scores = [&](int tile) {
    begin_products();
    begin_dots<T, KeyRows>(scores, queries, keys_at(tile));
    commit_products();
  };
  const auto weigh = [&](int tile) {
    const int key = tile * kKeys;
    keep(scores);
    if constexpr (kScored)
      scores.each([&](float& v, int m, int half, int column) {
        v *= power;
        if (mask.data)
          v += exponent_of_mask(mask_at(s, mask, own_first + row_in_sums(m, half), key + column));
      });
    if (key + kKeys > all_keys || (s.causal && key + kKeys > own_first + 1))
      scores.each([&](float& v, int m, int half, int column) {
        const int k = key + column;
        if (k >= all_keys || (s.causal && k > own_first + row_in_sums(m, half)))
          v = static_cast<float>(-portable::kInf);
      });
    softmax.weigh(scores, unit, out, [&] {
      wait_for_products<0>();
      keep(out);
    });
  };
  const auto next = [&](int tile) {  // copies of the tile have come
    wait_for_copies<0>();
    publish_copies();
    __syncthreads();
    copy_values(tile + 1);
  };
  const auto begin_values = [&](const Left<1, kKeys / 16>& weights, int tile) {
    begin_products();
    begin_product<T, KeyRows>(out, weights, values_at(tile));
    commit_products();
  };
  if (own_tiles > 0) {
    begin_scores(0);
    wait_for_products<0>();
    weigh(0);
    for (int tile = 0; tile + 1 < own_tiles; ++tile) {
      next(tile);
      auto weights = rounded<T>(scores);
      if constexpr (Sizes::kTogether) {
        const RightSide k_at = right_side(keys_at(tile + 1)), v_at = right_side(values_at(tile));
        begin_products();
        constexpr int kMost = D > kKeys ? D / 16 : kKeys / 16;
#pragma unroll
        for (int step = 0; step < kMost; ++step) {
          if (step < D / 16) begin_dots_step<T, KeyRows>(scores, queries, k_at, step);
          if (step < kKeys / 16) begin_product_step<T, KeyRows>(out, weights, v_at, step);
        }
        commit_products();
        wait_for_products<0>();
        keep(out);
        keep(weights);
        weigh(tile + 1);
      } else {
        begin_scores(tile + 1);
        begin_values(weights, tile);
        wait_for_products<1>();
        weigh(tile + 1);
        wait_for_products<0>();
        keep(out);
        keep(weights);
      }
    }
    next(own_tiles - 1);
    auto weights = rounded<T>(scores);
    begin_values(weights, own_tiles - 1);
    wait_for_products<0>();
    keep(out);
    keep(weights);
  }
  for (int tile = own_tiles; tile < tiles; ++tile) next(tile);  // hidden from the warpgroup's

  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = softmax.total(0, half);
    inverse[half] = sum == 0 ? 0 : 1 / sum;
    const int query = own_first + row_in_sums(0, half);
    if (query < s.queries && lane_of_warp() % 4 == 0)
      f.log_sums[at * s.queries + query] =
          sum == 0 ? static_cast<float>(portable::kInf)
                   : softmax.base[0][half] * unit / static_cast<float>(kLog2E) + portable::log(sum);
  }
  out.each([&](float& v, int, int half, int) { v *= inverse[half]; });
  store_rows<QueryRows>(memory + Panel::bytes(own_rows), out, matrix_of(s, f.out, at), own_first,
                        s.queries, s.value_size);
}

template <class T, class Sizes, bool kScored> void start_warpgroups(const FlashForward<T>& f) {
  const int64_t parts = parts_of(f.s.queries, Sizes::kQueries),
                blocks = f.s.batch * f.s.heads * parts;
  launch(attend_by_warpgroups<T, Sizes, kScored>, static_cast<unsigned>(blocks), Sizes::kThreads,
         Sizes::kSharedBytes, f, static_cast<int>(parts));
}
template <class T, class Sizes> void start_warpgroups(const FlashForward<T>& f) {
  if (f.mask.data || f.s.scale <= 0) start_warpgroups<T, Sizes, true>(f);
  else start_warpgroups<T, Sizes, false>(f);
}

}  // namespace

template <class T> void attend_by_warpgroups(const FlashForward<T>& f) {
  if (is_narrow(f.s)) start_warpgroups<T, ForwardSizes<64, 2, 128, 1>>(f);
  else start_warpgroups<T, ForwardSizes<128, 2, 64, 1>>(f);
}
template void attend_by_warpgroups(const FlashForward<Half>& f);
template void attend_by_warpgroups(const FlashForward<BFloat16>& f);

}  // namespace taeda::cuda
