// Gradients of attention of half precision by warpgroups, on sm_90a, for rows of up to 64: as in
// attention_mma_backward.cu, but each warpgroup has 64 keys or queries, and while the weights of a
// tile are found the tensor cores multiply those of the tile before.
#include "kernels/cuda/nn/attention_wgmma.h"

namespace taeda::cuda {
namespace {

constexpr int kColumns = 64, kTile = 64;  // features; rows of a warpgroup, and of the other side
constexpr int kStages = 3;                // tiles of the other side in memory
constexpr int kCopyBytes = 2 * Panel::bytes(kTile) + 1024;  // of two matrices, and numbers of rows
using TileRows = Panels<kColumns, kTile>;

template <int kGroups, int kBlocks_, bool kPaired_ = false> struct BackwardSizes {
  static constexpr bool kPaired = kPaired_;
  static constexpr int kBlocks = kBlocks_, kThreads = kGroups * kWarpgroup, kOwn = kGroups * kTile;
  using OwnRows = Panels<kColumns, kOwn>;
  static constexpr int kSharedBytes =
      2 * OwnRows::kBytes + kStages * kCopyBytes + kStatsBytes<kOwn>;
};

// The scores of a warpgroup with a tile of the other side, and the gradients of its weights. Both
// are computed from the rows of `left` and `left_gradients`.
struct Scores {
  Sums<1, kTile / 8> weights, changes;

  template <class T, bool kPaired>
  __device__ __forceinline__ void begin(const LeftRows<kColumns>& left,
                                        const LeftRows<kColumns>& left_of_changes,
                                        SharedAddress tile) {
    begin_products();
    if constexpr (kPaired) {
      const RightSide first = right_side(tile), second = right_side(tile + TileRows::kBytes);
#pragma unroll
      for (int step = 0; step < kColumns / 16; ++step) {
        begin_dots_step<T, TileRows>(weights, left, first, step);
        begin_dots_step<T, TileRows>(changes, left_of_changes, second, step);
      }
      commit_products();
      return;
    }
    begin_dots<T, TileRows>(weights, left, tile);
    commit_products();
    begin_dots<T, TileRows>(changes, left_of_changes, tile + TileRows::kBytes);
    commit_products();
  }
};

template <class T, class Sizes, bool kMasked>
__global__ void __launch_bounds__(Sizes::kThreads, Sizes::kBlocks)
    key_gradients_by_warpgroups(const __grid_constant__ FlashBackward<T> f, int parts) {
  constexpr int kThreads = Sizes::kThreads, kOwn = Sizes::kOwn;
  using OwnRows = typename Sizes::OwnRows;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  const int first = static_cast<int>(blockIdx.x) % parts * kOwn;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_keys = memory + Panel::bytes(own_rows);
  char* const copies = memory + 2 * OwnRows::kBytes;
  const int tiles = (static_cast<int>(s.queries) + kTile - 1) / kTile;
  const int first_tile = s.causal ? first / kTile : 0,
            own_first_tile = s.causal ? own_first / kTile : 0;

  const auto copy_at = [&](int tile) { return copies + tile % kStages * kCopyBytes; };
  const auto q = matrix_of(s, f.q, at), g = matrix_of(s, f.g, at);
  const auto copy_queries = [&](int tile) {
    if (tile >= tiles) return;
    const SharedAddress to = shared_address(copy_at(tile));
    copy_rows<TileRows, kTile, kThreads>(to, q, tile * kTile, s.queries, s.size);
    copy_rows<TileRows, kTile, kThreads>(to + TileRows::kBytes, g, tile * kTile, s.queries,
                                         s.value_size);
    copy_stats<kTile, kThreads>(to + 2 * TileRows::kBytes, f, at, tile * kTile);
    commit_copies();
  };
  const auto next = [&](int tile) {  // copies of the tile have come
    wait_for_copies<0>();
    publish_copies();
    __syncthreads();
    copy_queries(tile + 1);
  };
  copy_rows<OwnRows, kOwn, kThreads>(shared_address(memory), matrix_of(s, f.k, at), first, s.keys,
                                     s.size);
  copy_rows<OwnRows, kOwn, kThreads>(shared_address(memory) + OwnRows::kBytes,
                                     matrix_of(s, f.v, at), first, s.keys, s.value_size);
  commit_copies();
  copy_queries(first_tile);
  wait_for_copies<0>();
  __syncthreads();
  const LeftRows<kColumns> keys(shared_address(own_keys), 0),
      values(shared_address(own_keys) + OwnRows::kBytes, 0);

  const Weigher<kMasked> weigh(f, at);
  Sums<1, kColumns / 8> dk, dv;
  Scores scores;
  Left<1, kTile / 16> weights, changes;
  dk.clear();
  dv.clear();
  // `later`: groups of products that were begun after the scores'.
  const auto finish_scores = [&]<int kLater>(std::integral_constant<int, kLater>, int tile) {
    const int query = tile * kTile;
    const auto* log_sums = reinterpret_cast<const float*>(copy_at(tile) + 2 * TileRows::kBytes);
    const float* dots = log_sums + kTile;
    wait_for_products<kLater + (Sizes::kPaired ? 0 : 1)>();
    keep(scores.weights);
    scores.weights.each([&](float& v, int m, int half, int column) {
      v = weigh(v, query + column, own_first + row_in_sums(m, half), log_sums[column]);
    });
    if (s.causal && query < own_first + 15)
      scores.weights.each([&](float& v, int m, int half, int column) {
        if (own_first + row_in_sums(m, half) > query + column) v = 0;
      });
    wait_for_products<kLater>();
    keep(scores.changes);
    scores.changes.each(
        [&](float& v, float weight, int, int, int column) { v = weight * (v - dots[column]); },
        scores.weights);
    wait_for_products<0>();
    keep(dk);
    keep(dv);
    keep(weights);
    keep(changes);
    weights = rounded<T>(scores.weights);
    changes = rounded<T>(scores.changes);
  };
  const auto begin_sums = [&](int tile) {
    const SharedAddress query_rows = shared_address(copy_at(tile));
    begin_products();
    const RightSide q_at = right_side(query_rows), g_at = right_side(query_rows + TileRows::kBytes);
#pragma unroll
    for (int step = 0; step < kTile / 16; ++step) {
      begin_product_step<T, TileRows>(dv, weights, g_at, step);
      begin_product_step<T, TileRows>(dk, changes, q_at, step);
    }
    commit_products();
  };

  for (int tile = first_tile; tile < own_first_tile && tile < tiles; ++tile)
    next(tile);  // none sees the warpgroup's keys
  if (own_first_tile < tiles) {
    next(own_first_tile);
    scores.begin<T, Sizes::kPaired>(keys, values, shared_address(copy_at(own_first_tile)));
    finish_scores(std::integral_constant<int, 0>(), own_first_tile);
    for (int tile = own_first_tile; tile + 1 < tiles; ++tile) {
      next(tile + 1);
      scores.begin<T, Sizes::kPaired>(keys, values, shared_address(copy_at(tile + 1)));
      begin_sums(tile);
      finish_scores(std::integral_constant<int, 1>(), tile + 1);
    }
    begin_sums(tiles - 1);
    wait_for_products<0>();
    keep(dk);
    keep(dv);
    keep(weights);
    keep(changes);
  }

  dk.each([&](float& v, int, int, int) { v *= static_cast<float>(s.scale); });
  store_rows<OwnRows>(own_keys, dk, matrix_of(s, f.dk, at), own_first, s.keys, s.size);
  store_rows<OwnRows>(own_keys + OwnRows::kBytes, dv, matrix_of(s, f.dv, at), own_first, s.keys,
                      s.value_size);
}

template <class T, class Sizes, bool kMasked>
__global__ void __launch_bounds__(Sizes::kThreads, Sizes::kBlocks)
    query_gradients_by_warpgroups(const __grid_constant__ FlashBackward<T> f, int parts) {
  constexpr int kThreads = Sizes::kThreads, kOwn = Sizes::kOwn;
  using OwnRows = typename Sizes::OwnRows;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * kOwn;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_queries = memory + Panel::bytes(own_rows);
  const SharedAddress copies = shared_address(memory) + 2 * OwnRows::kBytes;
  char* const stats = memory + 2 * OwnRows::kBytes + kStages * kCopyBytes;
  const auto all_keys = static_cast<int>(s.keys);
  const auto seen = [&](int queries) {  // tiles of keys, by the queries before `queries`
    return ((s.causal && queries < all_keys ? queries : all_keys) + kTile - 1) / kTile;
  };
  const int tiles = seen(first + kOwn), own_tiles = seen(first + (own_rows / kTile + 1) * kTile);

  const auto copy_at = [&](int tile) { return copies + tile % kStages * kCopyBytes; };
  const auto k = matrix_of(s, f.k, at), v = matrix_of(s, f.v, at);
  const auto copy_keys = [&](int tile) {
    if (tile >= tiles) return;
    copy_rows<TileRows, kTile, kThreads>(copy_at(tile), k, tile * kTile, s.keys, s.size);
    copy_rows<TileRows, kTile, kThreads>(copy_at(tile) + TileRows::kBytes, v, tile * kTile, s.keys,
                                         s.value_size);
    commit_copies();
  };
  const auto next = [&](int tile) {
    wait_for_copies<0>();
    publish_copies();
    __syncthreads();
    copy_keys(tile + 1);
  };
  copy_rows<OwnRows, kOwn, kThreads>(shared_address(memory), matrix_of(s, f.q, at), first,
                                     s.queries, s.size);
  copy_rows<OwnRows, kOwn, kThreads>(shared_address(memory) + OwnRows::kBytes,
                                     matrix_of(s, f.g, at), first, s.queries, s.value_size);
  copy_stats<kOwn, kThreads>(shared_address(stats), f, at, first);
  commit_copies();
  copy_keys(0);
  wait_for_copies<0>();
  __syncthreads();
  const LeftRows<kColumns> queries(shared_address(own_queries), 0),
      gradients(shared_address(own_queries) + OwnRows::kBytes, 0);
  float log_sums[2], dots[2];
  for (int half = 0; half < 2; ++half) {
    const float* own = reinterpret_cast<const float*>(stats) + own_rows + row_in_sums(0, half);
    log_sums[half] = own[0];
    dots[half] = own[kOwn];
  }

  const Weigher<kMasked> weigh(f, at);
  Sums<1, kColumns / 8> dq;
  Scores scores;
  Left<1, kTile / 16> changes;
  dq.clear();
  const auto finish_scores = [&]<int kLater>(std::integral_constant<int, kLater>, int tile) {
    const int key = tile * kTile;
    wait_for_products<kLater + (Sizes::kPaired ? 0 : 1)>();
    keep(scores.weights);
    scores.weights.each([&](float& v, int m, int half, int column) {
      v = weigh(v, own_first + row_in_sums(m, half), key + column, log_sums[half]);
    });
    if (key + kTile > all_keys || (s.causal && key + kTile > own_first + 1))
      scores.weights.each([&](float& v, int m, int half, int column) {
        const int k = key + column;
        if (k >= all_keys || (s.causal && k > own_first + row_in_sums(m, half))) v = 0;
      });
    wait_for_products<kLater>();
    keep(scores.changes);
    scores.changes.each(
        [&](float& v, float weight, int, int half, int) { v = weight * (v - dots[half]); },
        scores.weights);
    wait_for_products<0>();
    keep(dq);
    keep(changes);
    changes = rounded<T>(scores.changes);
  };
  const auto begin_sums = [&](int tile) {
    begin_products();
    begin_product<T, TileRows>(dq, changes, copy_at(tile));
    commit_products();
  };
  if (own_tiles > 0) {
    next(0);
    scores.begin<T, Sizes::kPaired>(queries, gradients, copy_at(0));
    finish_scores(std::integral_constant<int, 0>(), 0);
    for (int tile = 0; tile + 1 < own_tiles; ++tile) {
      next(tile + 1);
      scores.begin<T, Sizes::kPaired>(queries, gradients, copy_at(tile + 1));
      begin_sums(tile);
      finish_scores(std::integral_constant<int, 1>(), tile + 1);
    }
    begin_sums(own_tiles - 1);
    wait_for_products<0>();
    keep(dq);
    keep(changes);
  }
  for (int tile = own_tiles; tile < tiles; ++tile) next(tile);  // hidden from the warpgroup's
  dq.each([&](float& v, int, int, int) { v *= static_cast<float>(s.scale); });
  store_rows<OwnRows>(own_queries, dq, matrix_of(s, f.dq, at), own_first, s.queries, s.size);
}

template <class T, class Keys, class Queries, bool kMasked>
void start_warpgroups(const FlashBackward<T>& f) {
  const int64_t matrices = f.s.batch * f.s.heads;
  const int64_t query_parts = parts_of(f.s.queries, Queries::kOwn),
                key_parts = parts_of(f.s.keys, Keys::kOwn);
  launch(query_gradients_by_warpgroups<T, Queries, kMasked>,
         static_cast<unsigned>(matrices * query_parts), Queries::kThreads, Queries::kSharedBytes, f,
         static_cast<int>(query_parts));
  launch(key_gradients_by_warpgroups<T, Keys, kMasked>, static_cast<unsigned>(matrices * key_parts),
         Keys::kThreads, Keys::kSharedBytes, f, static_cast<int>(key_parts));
}

}  // namespace

template <class T> void backward_by_warpgroups(const FlashBackward<T>& f) {
  using Sizes = BackwardSizes<2, 1>;
  if (f.mask.data) start_warpgroups<T, Sizes, Sizes, true>(f);
  else start_warpgroups<T, Sizes, Sizes, false>(f);
}
template void backward_by_warpgroups(const FlashBackward<Half>& f);
template void backward_by_warpgroups(const FlashBackward<BFloat16>& f);

}  // namespace taeda::cuda
