// Attention of half precision by warpgroups, on sm_90 (FlashAttention-3, Shah et al. 2024): as in
// attention_mma.cu, but a block is one warpgroup with 64 queries, and while the weights of a tile
// are found, the tensor cores multiply those of the tile before with its values.
#include "kernels/cuda/common/wgmma.h"
#include "kernels/cuda/nn/attention_mma.h"

namespace taeda::cuda {
namespace {

constexpr int kTile = 64;  // queries of a block, and keys that it goes over together
static_assert(kBlock == kWarpgroup);
template <int D> constexpr int kBlocksOf = D <= 64 ? 3 : 2;  // that fit on a multiprocessor

// Rows of a tile in shared memory: panels of 64 columns after each other.
template <int D> struct Rows {
  static constexpr int kChunks = D / 8, kRowBytes = Panel::kRowBytes,
                       kPanelBytes = Panel::bytes(kTile), kBytes = D / 64 * kPanelBytes;
  __device__ static int offset(int row, int chunk) {
    return chunk / 8 * kPanelBytes + row * kRowBytes + ((chunk % 8 ^ (row & 7)) << 4);
  }
};
template <int D> constexpr int kSharedBytes = 5 * Rows<D>::kBytes;  // two tiles of keys, and values

// 16 rows of each warp in registers, from `rows`.
template <int D> struct LeftRows {
  uint32_t at[D / 16][4];

  __device__ __forceinline__ explicit LeftRows(SharedAddress rows) {
#pragma unroll
    for (int panel = 0; panel < D / 64; ++panel) {
      const auto lanes = Lanes<64>::down_first(rows + panel * Rows<D>::kPanelBytes);
#pragma unroll
      for (int step = 0; step < 4; ++step) lanes.load(at[panel * 4 + step], 0, 2 * step);
    }
  }
};

template <int kN> __device__ __forceinline__ void keep_all(Sums<1, kN>& s) {
#pragma unroll
  for (int n = 0; n < kN; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(s.at[0][n][i]);
}
template <int kSteps> __device__ __forceinline__ void keep_all(Left<1, kSteps>& left) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(left.at[step][0][i]);
}

// Begins to = left right^T.
template <class T, int D>
__device__ __forceinline__ void begin_dots(Sums<1, kTile / 8>& to, const LeftRows<D>& left,
                                           SharedAddress right) {
  const RightSide begin = right_side(right);
  begin_products();
#pragma unroll
  for (int step = 0; step < D / 16; ++step)
    multiply_add_64<T, false>(&to.at[0][0], left.at[step],
                              moved(begin, step / 4 * Rows<D>::kPanelBytes + step % 4 * 32),
                              step > 0);
  commit_products();
}
// Begins to += left right.
template <class T, int D>
__device__ __forceinline__ void begin_product(Sums<1, D / 8>& to, const Left<1, kTile / 16>& left,
                                              SharedAddress right) {
  const RightSide begin = right_side(right);
  begin_products();
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step)
#pragma unroll
    for (int panel = 0; panel < D / 64; ++panel)
      multiply_add_64<T, true>(&to.at[0][panel * 8], left.at[step][0],
                               moved(begin, panel * Rows<D>::kPanelBytes + Panel::bytes(16 * step)),
                               true);
  commit_products();
}

// kScored: scores are not the scaled products alone, or the scale is not positive.
template <class T, int D, bool kScored>
__global__ void __launch_bounds__(kBlock, kBlocksOf<D>)
    attend_by_warpgroup(const __grid_constant__ FlashForward<T> f, int parts) {
  using Tile = Rows<D>;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  // The last first: under a causal mask they take longest.
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * kTile;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  const SharedAddress query_tile = shared_address(memory), key_tiles = query_tile + Tile::kBytes,
                      value_tiles = key_tiles + 2 * Tile::kBytes;
  const int all_keys = static_cast<int>(s.keys),
            keys = s.causal && first + kTile < all_keys ? first + kTile : all_keys,
            tiles = (keys + kTile - 1) / kTile;

  const auto k = matrix_of(s, f.k, at), v = matrix_of(s, f.v, at);
  const auto keys_at = [&](int tile) { return key_tiles + tile % 2 * Tile::kBytes; };
  const auto values_at = [&](int tile) { return value_tiles + tile % 2 * Tile::kBytes; };
  const auto copy_keys = [&](int tile) {
    if (tile < tiles) copy_rows<Tile, kTile>(keys_at(tile), k, tile * kTile, s.keys, s.size);
  };
  // The values of a tile are needed with the keys of the next.
  const auto copy_values = [&](int tile) {
    if (tile < tiles)
      copy_rows<Tile, kTile>(values_at(tile), v, tile * kTile, s.keys, s.value_size);
    copy_keys(tile + 1);
    commit_copies();
  };
  copy_rows<Tile, kTile>(query_tile, matrix_of(s, f.q, at), first, s.queries, s.size);
  copy_keys(0);
  commit_copies();
  copy_values(0);
  wait_for_copies<1>();
  publish_copies();
  __syncthreads();
  const LeftRows<D> queries(query_tile + Panel::bytes(own_rows));

  const auto mask = matrix_of(s, f.mask, at);
  const float power = static_cast<float>(s.scale * kLog2E), unit = kScored ? 1 : power;
  Softmax<1> softmax;
  Sums<1, D / 8> out;
  Sums<1, kTile / 8> scores;
  out.clear();
  const auto weigh = [&](int tile) {
    const int key = tile * kTile;
    keep_all(scores);
    if constexpr (kScored)
      scores.each([&](float& v, int m, int half, int column) {
        v *= power;
        if (mask.data)
          v += exponent_of_mask(mask_at(s, mask, own_first + row_in_sums(m, half), key + column));
      });
    if (key + kTile > all_keys || (s.causal && key + kTile > own_first + 1))
      scores.each([&](float& v, int m, int half, int column) {
        const int k = key + column;
        if (k >= all_keys || (s.causal && k > own_first + row_in_sums(m, half)))
          v = static_cast<float>(-portable::kInf);
      });
    softmax.weigh(scores, unit, out, [&] {
      wait_for_products<0>();
      keep_all(out);
    });
  };
  const auto next =
      [&](int tile) {  // copies of the tile's values, and the next one's keys, are there
        wait_for_copies<0>();
        publish_copies();
        __syncthreads();
        copy_values(tile + 1);
      };
  if (tiles > 0) {
    begin_dots<T>(scores, queries, keys_at(0));
    wait_for_products<0>();
    weigh(0);
    for (int tile = 0; tile + 1 < tiles; ++tile) {
      next(tile);
      auto weights = rounded<T>(scores);
      begin_dots<T>(scores, queries, keys_at(tile + 1));
      begin_product<T, D>(out, weights, values_at(tile));
      wait_for_products<1>();
      weigh(tile + 1);
      wait_for_products<0>();
      keep_all(out);
      keep_all(weights);
    }
    next(tiles - 1);
    auto weights = rounded<T>(scores);
    begin_product<T, D>(out, weights, values_at(tiles - 1));
    wait_for_products<0>();
    keep_all(out);
    keep_all(weights);
  }

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
  store_rows<Tile>(memory + Panel::bytes(own_rows), out, matrix_of(s, f.out, at), own_first,
                   s.queries, s.value_size);
}

template <class T, int D, bool kScored> void start(const FlashForward<T>& f) {
  const int64_t parts = parts_of(f.s.queries, kTile), blocks = f.s.batch * f.s.heads * parts;
  launch(attend_by_warpgroup<T, D, kScored>, static_cast<unsigned>(blocks), kBlock, kSharedBytes<D>,
         f, static_cast<int>(parts));
}
template <class T, int D> void start(const FlashForward<T>& f) {
  if (f.mask.data || f.s.scale <= 0) start<T, D, true>(f);
  else start<T, D, false>(f);
}

}  // namespace

template <class T> void attend_by_warpgroups(const FlashForward<T>& f) {
  if (is_narrow(f.s)) start<T, 64>(f);
  else start<T, 128>(f);
}
template void attend_by_warpgroups(const FlashForward<Half>& f);
template void attend_by_warpgroups(const FlashForward<BFloat16>& f);

}  // namespace taeda::cuda
