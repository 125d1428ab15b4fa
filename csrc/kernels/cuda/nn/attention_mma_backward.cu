// Gradients of attention of half precision on tensor cores (FlashAttention-2, Dao 2023). One kernel
// has tiles of keys and goes over queries, for dk and dv; one has tiles of queries and goes over
// keys, for dq. Both compute the weights again, so that every sum is one warp's, in order. Weights
// and their gradients stay in registers, where they are the left sides of the next products.
#include "kernels/cuda/nn/attention_mma.h"

namespace taeda::cuda {
namespace {

// The weights of pairs, from the products of queries and keys.
template <bool kMasked> struct Weigher {
  const AttentionShape& s;
  AttentionMask<float> mask;
  float power;  // the scale, for exponentials of base 2

  template <class T>
  __device__ Weigher(const FlashBackward<T>& f, int at)
      : s(f.s),
        mask(matrix_of(f.s, f.mask, at)),
        power(static_cast<float>(f.s.scale * kLog2E)) {}
  __device__ __forceinline__ float operator()(float product, int query, int key,
                                              float log_sum) const {
    float exponent = product * power - log_sum * static_cast<float>(kLog2E);
    if constexpr (kMasked) {
      exponent += exponent_of_mask(mask_at(s, mask, query, key));
      if (exponent > 0) exponent = 0;  // what is left of lowest numbers
    }
    return exp2_approximate(exponent);
  }
};

// The log-sum-exp of kRows rows from `first`, and their dots, after each other; zeros beyond.
template <int kRows> constexpr int kStatsBytes = 2 * kRows * static_cast<int>(sizeof(float));
template <int kRows, class T>
__device__ __forceinline__ void copy_stats(SharedAddress to, const FlashBackward<T>& f, int at,
                                           int first) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kRows; i += kBlock) {
    const int64_t query = first + i % kRows;
    copy_async<4>(to + i * 4, (i < kRows ? f.log_sums : f.dots) + at * f.s.queries + query,
                  query < f.s.queries);
  }
}

// ---- Of keys and values ------------------------------------------------------------------------

template <int D> struct KeyTiles {
  static constexpr int kM = D <= 64 ? 2 : 1;  // tiles of 16 keys of a warp
  static constexpr int kKeys = 16 * kM * kWarps, kQueries = D <= 64 ? 32 : 64;
  static constexpr int kRowsBytes = Tile<D>::bytes(2 * kQueries),
                       kCopyBytes = kRowsBytes + kStatsBytes<kQueries>;
  static constexpr int kSharedBytes = Tile<D>::bytes(2 * kKeys) + 2 * kCopyBytes;
};

template <class T, int D, bool kMasked>
__global__ void __launch_bounds__(kBlock, 2)
    gradients_of_key_tiles(const __grid_constant__ FlashBackward<T> f, int parts) {
  using Rows = Tile<D>;
  using Sizes = KeyTiles<D>;
  constexpr int kM = Sizes::kM, kKeys = Sizes::kKeys, kQueries = Sizes::kQueries;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  const int first = static_cast<int>(blockIdx.x) % parts * kKeys;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16 * kM, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_keys = memory + Rows::bytes(own_rows);
  char* const own_values = own_keys + Rows::bytes(kKeys);
  char* const copies = memory + Rows::bytes(2 * kKeys);

  // Rows of queries and of the result's gradients, and the numbers of each.
  const auto copy_at = [&](int tile) { return copies + tile % 2 * Sizes::kCopyBytes; };
  const auto all_queries = static_cast<int>(s.queries);
  const int first_tile = s.causal ? first / kQueries : 0;
  const auto q = matrix_of(s, f.q, at), g = matrix_of(s, f.g, at);
  const auto copy_queries = [&](int tile) {
    const SharedAddress to = shared_address(copy_at(tile));
    copy_rows<Rows, kQueries>(to, q, tile * kQueries, s.queries, s.size);
    copy_rows<Rows, kQueries>(to + Rows::bytes(kQueries), g, tile * kQueries, s.queries,
                              s.value_size);
    copy_stats<kQueries>(to + Sizes::kRowsBytes, f, at, tile * kQueries);
    commit_copies();
  };
  copy_rows<Rows, kKeys>(shared_address(memory), matrix_of(s, f.k, at), first, s.keys, s.size);
  copy_rows<Rows, kKeys>(shared_address(memory) + Rows::bytes(kKeys), matrix_of(s, f.v, at), first,
                         s.keys, s.value_size);
  if (first_tile * kQueries < all_queries) copy_queries(first_tile);

  const Weigher<kMasked> weigh(f, at);
  const LeftInMemory<D, kM> keys{shared_address(own_keys)}, values{shared_address(own_values)};
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
      v = weigh(v, query + column, own_first + row_in_sums(m, half), log_sums[column]);
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
  store_rows<Rows>(own_keys, dk, matrix_of(s, f.dk, at), own_first, s.keys, s.size);
  store_rows<Rows>(own_values, dv, matrix_of(s, f.dv, at), own_first, s.keys, s.value_size);
}

// ---- Of queries --------------------------------------------------------------------------------

template <int D, bool kMasked> struct QueryTiles {
  static constexpr int kM = 2, kQueries = 16 * kM * kWarps, kKeys = D <= 64 && !kMasked ? 64 : 32;
  static constexpr int kSharedBytes =
      Tile<D>::bytes(2 * kQueries + 4 * kKeys) + kStatsBytes<kQueries>;
};

template <class T, int D, bool kMasked>
__global__ void __launch_bounds__(kBlock, 2)
    gradients_of_query_tiles(const __grid_constant__ FlashBackward<T> f, int parts) {
  using Rows = Tile<D>;
  constexpr int kM = QueryTiles<D, kMasked>::kM, kQueries = QueryTiles<D, kMasked>::kQueries,
                kKeys = QueryTiles<D, kMasked>::kKeys;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x) / parts;
  const int first = (parts - 1 - static_cast<int>(blockIdx.x) % parts) * kQueries;
  const int own_rows = static_cast<int>(threadIdx.x) / 32 * 16 * kM, own_first = first + own_rows;
  auto* const memory = static_cast<char*>(dynamic_shared());
  char* const own_queries = memory + Rows::bytes(own_rows);
  const SharedAddress query_rows = shared_address(memory),
                      key_tiles = query_rows + Rows::bytes(2 * kQueries);
  const int all_keys = static_cast<int>(s.keys),
            last = s.causal && first + kQueries < all_keys ? first + kQueries : all_keys;

  const auto keys_at = [&](int tile) { return key_tiles + tile % 2 * Rows::bytes(2 * kKeys); };
  const auto k = matrix_of(s, f.k, at), v = matrix_of(s, f.v, at);
  const auto copy_keys = [&](int tile) {
    copy_rows<Rows, kKeys>(keys_at(tile), k, tile * kKeys, s.keys, s.size);
    copy_rows<Rows, kKeys>(keys_at(tile) + Rows::bytes(kKeys), v, tile * kKeys, s.keys,
                           s.value_size);
    commit_copies();
  };
  copy_rows<Rows, kQueries>(query_rows, matrix_of(s, f.q, at), first, s.queries, s.size);
  copy_rows<Rows, kQueries>(query_rows + Rows::bytes(kQueries), matrix_of(s, f.g, at), first,
                            s.queries, s.value_size);
  char* const stats = memory + Rows::bytes(2 * kQueries + 4 * kKeys);
  copy_stats<kQueries>(shared_address(stats), f, at, first);
  copy_keys(0);

  const Weigher<kMasked> weigh(f, at);
  const LeftInMemory<D, kM> queries{shared_address(own_queries)},
      gradients{shared_address(own_queries) + Rows::bytes(kQueries)};
  Sums<kM, D / 8> dq;
  dq.clear();
  for (int tile = 0; tile * kKeys < last; ++tile) {
    const int key = tile * kKeys;
    wait_for_copies<0>();
    __syncthreads();
    if (key + kKeys < last) copy_keys(tile + 1);
    if (s.causal && key >= own_first + 16 * kM) continue;  // hidden from all of the warp's
    const float* log_sums = reinterpret_cast<const float*>(stats) + own_rows;
    const float* dots = log_sums + kQueries;
    Sums<kM, kKeys / 8> weights, changes;
    weights.clear();
    add_dots<T, D>(weights, queries, keys_at(tile));
    weights.each([&](float& v, int m, int half, int column) {
      v = weigh(v, own_first + row_in_sums(m, half), key + column, log_sums[row_in_sums(m, half)]);
    });
    if (key + kKeys > all_keys || (s.causal && key + kKeys > own_first + 1))
      weights.each([&](float& v, int m, int half, int column) {
        const int k = key + column;
        if (k >= all_keys || (s.causal && k > own_first + row_in_sums(m, half))) v = 0;
      });
    changes.clear();
    add_dots<T, D>(changes, gradients, keys_at(tile) + Rows::bytes(kKeys));
    changes.each([&](float& v, float weight, int m, int half,
                     int) { v = weight * (v - dots[row_in_sums(m, half)]); },
                 weights);
    add_product<T, D>(dq, rounded<T>(changes), keys_at(tile));
  }
  dq.each([&](float& v, int, int, int) { v *= static_cast<float>(s.scale); });
  store_rows<Rows>(own_queries, dq, matrix_of(s, f.dq, at), own_first, s.queries, s.size);
}

template <class T, int D, bool kMasked> void start_tiles(const FlashBackward<T>& f) {
  const int64_t matrices = f.s.batch * f.s.heads;
  const int64_t query_parts = parts_of(f.s.queries, QueryTiles<D, kMasked>::kQueries),
                key_parts = parts_of(f.s.keys, KeyTiles<D>::kKeys);
  launch(gradients_of_query_tiles<T, D, kMasked>, static_cast<unsigned>(matrices * query_parts),
         kBlock, QueryTiles<D, kMasked>::kSharedBytes, f, static_cast<int>(query_parts));
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
