// Attention of half precision on tensor cores (FlashAttention-2, Dao 2023): a block has a tile of
// queries and goes over tiles of keys and values, of which the next is copied meanwhile. A warp has
// 32 of the queries; their scores become weights, and those the left side of the product with the
// values, without leaving its registers.
#include "kernels/cuda/nn/attention_mma.h"

namespace taeda::cuda {
namespace {

constexpr int kM = 2;  // tiles of 16 queries of a warp
constexpr int kQueries = 16 * kM * kWarps;
template <int D> constexpr int kKeysOf = D <= 64 ? 64 : 32;  // what registers hold
template <int D> constexpr int kSharedBytes = Tile<D>::bytes(kQueries + 4 * kKeysOf<D>);

// Where the queries are few, in registers; else they are read for each tile of keys.
template <int D>
using Queries = std::conditional_t<D <= 64, LeftInRegisters<D, kM>, LeftInMemory<D, kM>>;
template <int D> __device__ __forceinline__ Queries<D> queries_in(SharedAddress rows) {
  const LeftInMemory<D, kM> in_memory{rows};
  if constexpr (D <= 64) {
    LeftInRegisters<D, kM> to;
    const auto loader = in_memory.loader();
#pragma unroll
    for (int step = 0; step < D / 16; ++step) loader.load(to.at[step], step);
    return to;
  } else {
    return in_memory;
  }
}

// kScored: scores are not the scaled products alone, or the scale is not positive.
template <class T, int D, bool kScored>
__global__ void __launch_bounds__(kBlock, 2)
    attend_tiles(const __grid_constant__ FlashForward<T> f, int parts) {
  using Rows = Tile<D>;
  constexpr int kKeys = kKeysOf<D>;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  // The last first: under a causal mask they take longest.
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * kQueries;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16 * kM, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  const SharedAddress query_tile = shared_address(memory),
                      key_tiles = query_tile + Rows::bytes(kQueries);
  const int all_keys = static_cast<int>(s.keys),
            keys = s.causal && first + kQueries < all_keys ? first + kQueries : all_keys;

  const auto keys_at = [&](int tile) { return key_tiles + tile % 2 * Rows::bytes(2 * kKeys); };
  const auto k = matrix_of(s, f.k, at), v = matrix_of(s, f.v, at);
  const auto copy_keys = [&](int tile) {
    copy_rows<Rows, kKeys>(keys_at(tile), k, tile * kKeys, s.keys, s.size);
    copy_rows<Rows, kKeys>(keys_at(tile) + Rows::bytes(kKeys), v, tile * kKeys, s.keys,
                           s.value_size);
    commit_copies();
  };
  copy_rows<Rows, kQueries>(query_tile, matrix_of(s, f.q, at), first, s.queries, s.size);
  copy_keys(0);
  wait_for_copies<0>();
  __syncthreads();
  const Queries<D> queries = queries_in<D>(query_tile + Rows::bytes(own_rows));

  const auto mask = matrix_of(s, f.mask, at);
  const float power = static_cast<float>(s.scale * kLog2E), unit = kScored ? 1 : power;
  Softmax<kM> softmax;
  Sums<kM, D / 8> out;
  out.clear();
  for (int tile = 0; tile * kKeys < keys; ++tile) {
    const int key = tile * kKeys;
    wait_for_copies<0>();
    __syncthreads();
    if (key + kKeys < keys) copy_keys(tile + 1);
    if (s.causal && key >= own_first + 16 * kM) continue;  // hidden from all of the warp's
    Sums<kM, kKeys / 8> scores;
    scores.clear();
    add_dots<T, D>(scores, queries, keys_at(tile));
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
    softmax.weigh(scores, unit, out, [] {});
    add_product<T, D>(out, rounded<T>(scores), keys_at(tile) + Rows::bytes(kKeys));
  }

  float inverse[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = softmax.total(m, half);
      inverse[m][half] = sum == 0 ? 0 : 1 / sum;
      const int query = own_first + row_in_sums(m, half);
      if (query < s.queries && lane_of_warp() % 4 == 0)
        f.log_sums[at * s.queries + query] =
            sum == 0
                ? static_cast<float>(portable::kInf)
                : softmax.base[m][half] * unit / static_cast<float>(kLog2E) + portable::log(sum);
    }
  out.each([&](float& v, int m, int half, int) { v *= inverse[m][half]; });
  store_rows<Rows>(memory + Rows::bytes(own_rows), out, matrix_of(s, f.out, at), own_first,
                   s.queries, s.value_size);
}

template <class T, int D, bool kScored> void start_tiles(const FlashForward<T>& f) {
  const int64_t parts = parts_of(f.s.queries, kQueries), blocks = f.s.batch * f.s.heads * parts;
  launch(attend_tiles<T, D, kScored>, static_cast<unsigned>(blocks), kBlock, kSharedBytes<D>, f,
         static_cast<int>(parts));
}
template <class T, int D> void start_tiles(const FlashForward<T>& f) {
  if (f.mask.data || f.s.scale <= 0) start_tiles<T, D, true>(f);
  else start_tiles<T, D, false>(f);
}

}  // namespace

template <class T> bool attend_on_tensor_cores(const FlashForward<T>& f) {
  if (!fits_tensor_cores(f.s, f.q, f.k, f.v, f.out)) return false;
  if (has_warpgroups()) attend_by_warpgroups(f);
  else if (is_narrow(f.s)) start_tiles<T, 64>(f);
  else start_tiles<T, 128>(f);
  return true;
}
template bool attend_on_tensor_cores(const FlashForward<Half>& f);
template bool attend_on_tensor_cores(const FlashForward<BFloat16>& f);

}  // namespace taeda::cuda
