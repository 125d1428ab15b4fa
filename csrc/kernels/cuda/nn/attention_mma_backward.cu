// Gradients of attention of half precision on tensor cores (FlashAttention-2, Dao 2023). One kernel
// has tiles of keys and goes over queries, for dk and dv; one has tiles of queries and goes over
// keys, for dq. Both compute the weights again, so that every sum is one warp's, in order. Weights
// and their gradients stay in registers, where they are the left sides of the next products.
#include "kernels/cuda/nn/attention_mma.h"

namespace taeda::cuda {
namespace {

// The weight of a pair, from the product of query and key.
struct Weigher {
  float power;  // the scale, for exponentials of base 2

  template <bool kMasked, class T>
  __device__ __forceinline__ float operator()(const FlashBackward<T>& f, int64_t at, float product,
                                              int query, int key, float log_sum) const {
    float exponent = product * power - log_sum * static_cast<float>(kLog2E);
    if constexpr (kMasked)
      exponent += static_cast<float>(kLog2E) * mask_at(f.s, f.mask, at, query, key);
    return exp2_approximate(exponent);
  }
};

// ---- Of keys and values
// --------------------------------------------------------------------------

template <int D> struct KeyTiles {
  static constexpr int kM = D <= 64 ? 2 : 1;  // tiles of 16 keys of a warp
  static constexpr int kKeys = 16 * kM * kWarps, kQueries = D <= 64 ? 32 : 64;
  static constexpr int kRowsBytes = Tile<D>::bytes(2 * kQueries),
                       kCopyBytes = kRowsBytes + 2 * kQueries * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = Tile<D>::bytes(2 * kKeys) + 2 * kCopyBytes;
};

template <class T, int D, bool kMasked>
__global__ void __launch_bounds__(kBlock, 2)
    gradients_of_key_tiles(const __grid_constant__ FlashBackward<T> f, int parts) {
  using Rows = Tile<D>;
  using Sizes = KeyTiles<D>;
  constexpr int kM = Sizes::kM, kKeys = Sizes::kKeys, kQueries = Sizes::kQueries;
  const AttentionShape& s = f.s;
  const int64_t at = static_cast<int>(blockIdx.x) / parts;
  const int first = static_cast<int>(blockIdx.x) % parts * kKeys;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16 * kM, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_keys = memory + Rows::bytes(own_rows);
  char* const own_values = own_keys + Rows::bytes(kKeys);
  char* const copies = memory + Rows::bytes(2 * kKeys);

  // Rows of queries and of the result's gradients, and the numbers of each.
  const auto copy_at = [&](int tile) { return copies + tile % 2 * Sizes::kCopyBytes; };
  const auto copy_queries = [&](int tile) {
    const int64_t query = int64_t{tile} * kQueries, left = s.queries - query;
    const SharedAddress to = shared_address(copy_at(tile));
    copy_rows<D, kQueries>(to, row_of(s, f.q, at, query), f.q.row, left, s.size);
    copy_rows<D, kQueries>(to + Rows::bytes(kQueries), row_of(s, f.g, at, query), f.g.row, left,
                           s.value_size);
    const int i = static_cast<int>(threadIdx.x) % kQueries;
    if (threadIdx.x < 2 * kQueries) {
      const float* from = (threadIdx.x < kQueries ? f.log_sums : f.dots) + at * s.queries;
      copy_async<4>(to + Sizes::kRowsBytes + static_cast<int>(threadIdx.x) * 4,
                    i < left ? from + query + i : from, i < left);
    }
    commit_copies();
  };
  const auto all_queries = static_cast<int>(s.queries);
  const int first_tile = s.causal ? first / kQueries : 0;
  copy_rows<D, kKeys>(shared_address(memory), row_of(s, f.k, at, first), f.k.row, s.keys - first,
                      s.size);
  copy_rows<D, kKeys>(shared_address(memory) + Rows::bytes(kKeys), row_of(s, f.v, at, first),
                      f.v.row, s.keys - first, s.value_size);
  if (first_tile * kQueries < all_queries) copy_queries(first_tile);

  const Weigher weigh{static_cast<float>(s.scale * kLog2E)};
  const LeftInMemory<D, kM> keys{Lanes<D>::down_first(shared_address(own_keys))},
      values{Lanes<D>::down_first(shared_address(own_values))};
  Sums<kM, D / 8> dk, dv;
  dk.clear();
  dv.clear();
  for (int tile = first_tile; tile * kQueries < all_queries; ++tile) {
    const int query = tile * kQueries;
    wait_for_copies<0>();
    __syncthreads();
    if (query + kQueries < all_queries) copy_queries(tile + 1);
    if (s.causal && query + kQueries <= own_first) continue;  // none sees the warp's keys
    const SharedAddress query_rows = shared_address(copy_at(tile)),
                        gradient_rows = query_rows + Rows::bytes(kQueries);
    const auto* log_sums = reinterpret_cast<const float*>(copy_at(tile) + Sizes::kRowsBytes);
    const float* dots = log_sums + kQueries;
    Sums<kM, kQueries / 8> weights, changes;
    weights.clear();
    add_dots<T, D>(weights, keys, query_rows);
    weights.each([&](float& v, int m, int half, int column) {
      v = weigh.template operator()<kMasked>(f, at, v, query + column,
                                             own_first + row_in_sums(m, half), log_sums[column]);
    });
    if (s.causal && query < own_first + 16 * kM - 1)
      weights.each([&](float& v, int m, int half, int column) {
        if (own_first + row_in_sums(m, half) > query + column) v = 0;
      });
    add_product<T, D>(dv, rounded<T>(weights), gradient_rows);
    changes.clear();
    add_dots<T, D>(changes, values, gradient_rows);
    changes.each(
        [&](float& v, float weight, int, int, int column) { v = weight * (v - dots[column]); },
        weights);
    add_product<T, D>(dk, rounded<T>(changes), query_rows);
  }

  wait_for_copies<0>();  // where no query sees a key
  __syncthreads();
  dk.each([&](float& v, int, int, int) { v *= static_cast<float>(s.scale); });
  store_rows<T, D>(own_keys, dk, row_of(s, f.dk, at, own_first), f.dk.row, s.keys - own_first,
                   s.size);
  store_rows<T, D>(own_values, dv, row_of(s, f.dv, at, own_first), f.dv.row, s.keys - own_first,
                   s.value_size);
}

// ---- Of queries
// ----------------------------------------------------------------------------------

template <int D> struct QueryTiles {
  static constexpr int kM = 2, kQueries = 16 * kM * kWarps, kKeys = D <= 64 ? 64 : 32;
  static constexpr int kSharedBytes = Tile<D>::bytes(2 * kQueries + 4 * kKeys);
};

template <class T, int D, bool kMasked>
__global__ void __launch_bounds__(kBlock, 2)
    gradients_of_query_tiles(const __grid_constant__ FlashBackward<T> f, int parts) {
  using Rows = Tile<D>;
  constexpr int kM = QueryTiles<D>::kM, kQueries = QueryTiles<D>::kQueries,
                kKeys = QueryTiles<D>::kKeys;
  const AttentionShape& s = f.s;
  const int64_t at = static_cast<int>(blockIdx.x) / parts;
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * kQueries;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16 * kM, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_queries = memory + Rows::bytes(own_rows);
  const SharedAddress query_rows = shared_address(memory),
                      key_tiles = query_rows + Rows::bytes(2 * kQueries);
  const int all_keys = static_cast<int>(s.keys),
            last = s.causal && first + kQueries < all_keys ? first + kQueries : all_keys;

  const auto keys_at = [&](int tile) { return key_tiles + tile % 2 * Rows::bytes(2 * kKeys); };
  const auto copy_keys = [&](int tile) {
    const int64_t key = int64_t{tile} * kKeys;
    const SharedAddress to = keys_at(tile);
    copy_rows<D, kKeys>(to, row_of(s, f.k, at, key), f.k.row, s.keys - key, s.size);
    copy_rows<D, kKeys>(to + Rows::bytes(kKeys), row_of(s, f.v, at, key), f.v.row, s.keys - key,
                        s.value_size);
    commit_copies();
  };
  const int64_t left = s.queries - first;
  copy_rows<D, kQueries>(query_rows, row_of(s, f.q, at, first), f.q.row, left, s.size);
  copy_rows<D, kQueries>(query_rows + Rows::bytes(kQueries), row_of(s, f.g, at, first), f.g.row,
                         left, s.value_size);
  copy_keys(0);

  float log_sums[kM][2], dots[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = own_first + row_in_sums(m, half);
      const bool inside = query < s.queries;
      log_sums[m][half] = inside ? f.log_sums[at * s.queries + query] : 0;
      dots[m][half] = inside ? f.dots[at * s.queries + query] : 0;
    }
  const Weigher weigh{static_cast<float>(s.scale * kLog2E)};
  const LeftInMemory<D, kM> queries{Lanes<D>::down_first(shared_address(own_queries))},
      gradients{Lanes<D>::down_first(shared_address(own_queries) + Rows::bytes(kQueries))};
  Sums<kM, D / 8> dq;
  dq.clear();
  for (int tile = 0; tile * kKeys < last; ++tile) {
    const int key = tile * kKeys;
    wait_for_copies<0>();
    __syncthreads();
    if (key + kKeys < last) copy_keys(tile + 1);
    if (s.causal && key >= own_first + 16 * kM) continue;  // hidden from all of the warp's
    Sums<kM, kKeys / 8> weights, changes;
    weights.clear();
    add_dots<T, D>(weights, queries, keys_at(tile));
    weights.each([&](float& v, int m, int half, int column) {
      v = weigh.template operator()<kMasked>(f, at, v, own_first + row_in_sums(m, half),
                                             key + column, log_sums[m][half]);
    });
    if (key + kKeys > all_keys || (s.causal && key + kKeys > own_first + 1))
      weights.each([&](float& v, int m, int half, int column) {
        const int k = key + column;
        if (k >= all_keys || (s.causal && k > own_first + row_in_sums(m, half))) v = 0;
      });
    changes.clear();
    add_dots<T, D>(changes, gradients, keys_at(tile) + Rows::bytes(kKeys));
    changes.each(
        [&](float& v, float weight, int m, int half, int) { v = weight * (v - dots[m][half]); },
        weights);
    add_product<T, D>(dq, rounded<T>(changes), keys_at(tile));
  }
  dq.each([&](float& v, int, int, int) { v *= static_cast<float>(s.scale); });
  store_rows<T, D>(own_queries, dq, row_of(s, f.dq, at, own_first), f.dq.row, s.queries - own_first,
                   s.size);
}

template <class T, int D, bool kMasked> void start_tiles(const FlashBackward<T>& f) {
  const int64_t matrices = f.s.batch * f.s.heads;
  const int64_t query_parts = parts_of(f.s.queries, QueryTiles<D>::kQueries),
                key_parts = parts_of(f.s.keys, KeyTiles<D>::kKeys);
  launch(gradients_of_query_tiles<T, D, kMasked>, static_cast<unsigned>(matrices * query_parts),
         kBlock, QueryTiles<D>::kSharedBytes, f, static_cast<int>(query_parts));
  launch(gradients_of_key_tiles<T, D, kMasked>, static_cast<unsigned>(matrices * key_parts), kBlock,
         KeyTiles<D>::kSharedBytes, f, static_cast<int>(key_parts));
}
template <class T, int D> void start_tiles(const FlashBackward<T>& f) {
  if (f.mask.data) start_tiles<T, D, true>(f);
  else start_tiles<T, D, false>(f);
}

}  // namespace

template <class T> bool backward_on_tensor_cores(const FlashBackward<T>& f) {
  if (!fits_tensor_cores(f.s, f.g, f.q, f.k, f.v, f.out, f.dq, f.dk, f.dv)) return false;
  find_dots<8>(f);
  if (is_narrow(f.s)) start_tiles<T, 64>(f);
  else start_tiles<T, 128>(f);
  return true;
}
template bool backward_on_tensor_cores(const FlashBackward<Half>& f);
template bool backward_on_tensor_cores(const FlashBackward<BFloat16>& f);

}  // namespace taeda::cuda
