// Attention by the online softmax (Milakov and Gimelshein 2018; Dao 2023): a block has 64 queries
// and goes over 64 keys at a time, so that the scores are never whole in memory. The gradients
// compute them again. For every type and size; on tensor cores, half precision is in
// attention_mma.cu.
#include "kernels/cuda/nn/attention.h"

#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// A block computes kTile x kTile numbers, each thread kOwnRows x kOwnColumns of them, from panels
// in shared memory, kDepth columns of both sides at a time.
constexpr int kTile = 64, kDepth = 32, kOwnRows = 8, kOwnColumns = 4;
constexpr int kAcross = kTile / kOwnColumns, kBlock = kAcross * (kTile / kOwnRows);
constexpr int kStride = kTile + 4;  // neighbours remain aligned

template <class S> using Panel = S (*)[kStride];
template <class S> struct Sums {
  S at[kOwnRows][kOwnColumns] = {};

  // f(number, row, column), the places within the tile
  template <class F> __device__ __forceinline__ void each(F f) {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i)
#pragma unroll
      for (int j = 0; j < kOwnColumns; ++j) f(at[i][j], first_row() + i, first_column() + j);
  }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kAcross * kOwnRows; }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) % kAcross * kOwnColumns;
  }
};
template <class S, int kN> struct alignas(16) Neighbours {
  S at[kN];
};

// to += the transpose of left, times right; of `depth` rows both.
template <class S>
__device__ __forceinline__ void add_product(Sums<S>& to, Panel<S> left, Panel<S> right, int depth) {
#pragma unroll 4
  for (int d = 0; d < depth; ++d) {
    const auto a = *reinterpret_cast<const Neighbours<S, kOwnRows>*>(&left[d][to.first_row()]);
    const auto b =
        *reinterpret_cast<const Neighbours<S, kOwnColumns>*>(&right[d][to.first_column()]);
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i)
#pragma unroll
      for (int j = 0; j < kOwnColumns; ++j) to.at[i][j] += a.at[i] * b.at[j];
  }
}
// The numbers, transposed: as a left side.
template <class S> __device__ __forceinline__ void store_transposed(Panel<S> to, const Sums<S>& s) {
#pragma unroll
  for (int j = 0; j < kOwnColumns; ++j) {
    Neighbours<S, kOwnRows> column;
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) column.at[i] = s.at[i][j];
    *reinterpret_cast<Neighbours<S, kOwnRows>*>(&to[s.first_column() + j][s.first_row()]) = column;
  }
}

// kTile rows of a matrix, `step` apart; zeros beyond `rows` and `columns`.
template <class T> struct RowsOf {
  const T* data;
  int64_t step, rows, columns;

  // Columns from `first`: kTile as they are, or kDepth transposed.
  template <class S> __device__ __forceinline__ void load(Panel<S> to, int64_t first) const {
    each<kTile, S>(first, [&](int row, int column, S v) { to[row][column] = v; });
  }
  template <class S>
  __device__ __forceinline__ void load_transposed(Panel<S> to, int64_t first) const {
    each<kDepth, S>(first, [&](int row, int column, S v) { to[column][row] = v; });
  }

 private:
  // f(row, column, number) for those of this thread, of kColumns columns; neighbours read
  // neighbours.
  template <int kColumns, class S, class F>
  __device__ __forceinline__ void each(int64_t first, F f) const {
    constexpr int kAtOnce = kBlock / kColumns;
    const int column = static_cast<int>(threadIdx.x) % kColumns;
    int row = static_cast<int>(threadIdx.x) / kColumns;
    const int64_t last = first + column < columns ? rows : 0;
    const T* from = data + row * step + first + column;
#pragma unroll 8
    for (int i = 0; i < kTile / kAtOnce; ++i) {
      f(row, column, row < last ? convert<S>(*from) : S(0));
      from += step * kAtOnce;
      row += kAtOnce;
    }
  }
};
template <class T>
__device__ RowsOf<T> rows_from(const AttentionMatrices<const T>& m, int64_t first, int64_t rows,
                               int64_t columns) {
  return {m.data + first * m.row, m.row, rows - first, columns};
}

// Shared memory: panels for two sides, or for a whole right side, and a left side of weights.
template <class S> struct Memory {
  static_assert(2 * kDepth == kTile);
  static constexpr size_t kBytes = sizeof(S) * 2 * kTile * kStride;
  Panel<S> whole = static_cast<Panel<S>>(dynamic_shared());
  Panel<S> weights = whole + kTile;

  // left right^T
  template <class T>
  __device__ __forceinline__ Sums<S> dots(const RowsOf<T>& left, const RowsOf<T>& right) const {
    Sums<S> to;
    for (int64_t first = 0; first < left.columns; first += kDepth) {
      __syncthreads();
      left.load_transposed(whole, first);
      right.load_transposed(whole + kDepth, first);
      __syncthreads();
      add_product(to, whole, whole + kDepth, kDepth);
    }
    return to;
  }
  // to += left^T times kTile columns of `right` from `first`
  template <class T>
  __device__ __forceinline__ void add(Sums<S>& to, const Sums<S>& left, const RowsOf<T>& right,
                                      int64_t first) const {
    __syncthreads();
    store_transposed(weights, left);
    right.load(whole, first);
    __syncthreads();
    add_product(to, weights, whole, kTile);
  }
};

template <class S, class T>
__device__ __forceinline__ void store(Sums<S>& sums, const AttentionMatrices<T>& to,
                                      int64_t first_row, int64_t rows, int64_t first_column,
                                      int64_t columns) {
  sums.each([&](S& v, int row, int column) {
    if (first_row + row < rows && first_column + column < columns)
      to.data[(first_row + row) * to.row + first_column + column] = convert<T>(v);
  });
}

// The scores of a tile of queries (rows) and keys, or of keys and queries, from the products; -inf
// where the query does not see the key, or is none.
template <bool kKeysAreRows, class S>
__device__ __forceinline__ void score(Sums<S>& products, const AttentionShape& s,
                                      const AttentionMask<S>& mask, int64_t first_query,
                                      int64_t first_key) {
  const auto each = [&](auto f) {
    products.each([&](S& v, int row, int column) {
      f(v, first_query + (kKeysAreRows ? column : row), first_key + (kKeysAreRows ? row : column));
    });
  };
  products.each([&](S& v, int, int) { v *= S(s.scale); });
  if (mask.data) each([&](S& v, int64_t query, int64_t key) { v += mask_at(s, mask, query, key); });
  if (first_query + kTile > s.queries || is_hidden(s, first_query, first_key + kTile - 1))
    each([&](S& v, int64_t query, int64_t key) {
      if (query >= s.queries || is_hidden(s, query, key)) v = static_cast<S>(-portable::kInf);
    });
}
template <class S> __device__ S exp_of(S score, S base) {
  return score == static_cast<S>(-portable::kInf) ? S(0) : portable::exp(score - base);
}
// Of the threads that have the same rows.
template <class S, class Merge> __device__ S across_all(S v, Merge merge) {
#pragma unroll
  for (int distance = kAcross / 2; distance > 0; distance /= 2)
    v = merge(v, __shfl_xor_sync(~0u, v, distance));
  return v;
}

// The result's columns from blockIdx.y * kTile.
template <class T>
__global__ void __launch_bounds__(kBlock, sizeof(AttentionScore<T>) == 4 ? 3 : 1)
    attend(const __grid_constant__ FlashForward<T> f, int64_t parts) {
  using S = AttentionScore<T>;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x / parts);
  const int64_t first = (parts - 1 - blockIdx.x % parts) * kTile,
                first_column = int64_t{blockIdx.y} * kTile;
  const Memory<S> memory;
  const auto mask = matrix_of(s, f.mask, at);
  const auto all_k = matrix_of(s, f.k, at), all_v = matrix_of(s, f.v, at);
  const auto queries = rows_from(matrix_of(s, f.q, at), first, s.queries, s.size);
  S most[kOwnRows], sum[kOwnRows] = {};
  for (S& m : most) m = static_cast<S>(-portable::kInf);
  Sums<S> out;
  for (int64_t key = 0; key < s.keys && !(s.causal && key >= first + kTile); key += kTile) {
    Sums<S> weights = memory.dots(queries, rows_from(all_k, key, s.keys, s.size));
    score<false>(weights, s, mask, first, key);
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      S now = most[i];
      for (S v : weights.at[i]) now = now < v ? v : now;
      now = across_all(now, [](S a, S b) { return a < b ? b : a; });
      const S factor = exp_of(most[i], now);
      most[i] = now;
      sum[i] *= factor;
      for (S& v : weights.at[i]) sum[i] += v = exp_of(v, now);
      for (S& v : out.at[i]) v *= factor;
    }
    memory.add(out, weights, rows_from(all_v, key, s.keys, s.value_size), first_column);
  }
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i) {
    const S all = across_all(sum[i], [](S a, S b) { return a + b; });
    const int64_t query = first + out.first_row() + i;
    for (S& v : out.at[i]) v = all == S(0) ? S(0) : v / all;
    if (query < s.queries && first_column == 0 && out.first_column() == 0)
      f.log_sums[at * s.queries + query] =
          all == S(0) ? static_cast<S>(portable::kInf) : most[i] + portable::log(all);
  }
  store(out, matrix_of(s, f.out, at), first, s.queries, first_column, s.value_size);
}

// The columns of dq from blockIdx.y * kTile.
template <class T>
__global__ void __launch_bounds__(kBlock)
    query_gradients(const __grid_constant__ FlashBackward<T> f, int64_t parts) {
  using S = AttentionScore<T>;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x / parts);
  const int64_t first = (parts - 1 - blockIdx.x % parts) * kTile,
                first_column = int64_t{blockIdx.y} * kTile;
  const Memory<S> memory;
  const auto mask = matrix_of(s, f.mask, at);
  const auto all_k = matrix_of(s, f.k, at), all_v = matrix_of(s, f.v, at);
  const auto queries = rows_from(matrix_of(s, f.q, at), first, s.queries, s.size);
  const auto gradients = rows_from(matrix_of(s, f.g, at), first, s.queries, s.value_size);
  Sums<S> dq;
  for (int64_t key = 0; key < s.keys && !(s.causal && key >= first + kTile); key += kTile) {
    const auto keys = rows_from(all_k, key, s.keys, s.size);
    Sums<S> weights = memory.dots(queries, keys);
    Sums<S> changes = memory.dots(gradients, rows_from(all_v, key, s.keys, s.value_size));
    score<false>(weights, s, mask, first, key);
    weights.each([&](S& v, int row, int) {
      v = exp_of(v, first + row < s.queries ? f.log_sums[at * s.queries + first + row] : S(0));
    });
    changes.each([&](S& v, int row, int column) {
      const int64_t query = first + row;
      const S weight = weights.at[row - dq.first_row()][column - dq.first_column()];
      v = query < s.queries ? S(s.scale) * weight * (v - f.dots[at * s.queries + query]) : S(0);
    });
    memory.add(dq, changes, keys, first_column);
  }
  store(dq, matrix_of(s, f.dq, at), first, s.queries, first_column, s.size);
}

// The columns of dk and dv from blockIdx.y * kTile.
template <class T>
__global__ void __launch_bounds__(kBlock)
    key_gradients(const __grid_constant__ FlashBackward<T> f, int64_t parts) {
  using S = AttentionScore<T>;
  const AttentionShape& s = f.s;
  const int at = static_cast<int>(blockIdx.x / parts);
  const int64_t first = blockIdx.x % parts * kTile, first_column = int64_t{blockIdx.y} * kTile;
  const Memory<S> memory;
  const auto mask = matrix_of(s, f.mask, at);
  const auto all_q = matrix_of(s, f.q, at), all_g = matrix_of(s, f.g, at);
  const auto keys = rows_from(matrix_of(s, f.k, at), first, s.keys, s.size);
  const auto values = rows_from(matrix_of(s, f.v, at), first, s.keys, s.value_size);
  Sums<S> dk, dv;
  for (int64_t query = s.causal ? first : 0; query < s.queries; query += kTile) {
    const auto queries = rows_from(all_q, query, s.queries, s.size);
    const auto gradients = rows_from(all_g, query, s.queries, s.value_size);
    Sums<S> weights = memory.dots(keys, queries);
    score<true>(weights, s, mask, query, first);
    weights.each([&](S& v, int, int column) {
      v = exp_of(v,
                 query + column < s.queries ? f.log_sums[at * s.queries + query + column] : S(0));
    });
    memory.add(dv, weights, gradients, first_column);
    Sums<S> changes = memory.dots(values, gradients);
    changes.each([&](S& v, int row, int column) {
      const int64_t q = query + column;
      const S weight = weights.at[row - dk.first_row()][column - dk.first_column()];
      v = q < s.queries ? S(s.scale) * weight * (v - f.dots[at * s.queries + q]) : S(0);
    });
    memory.add(dk, changes, queries, first_column);
  }
  store(dk, matrix_of(s, f.dk, at), first, s.keys, first_column, s.size);
  store(dv, matrix_of(s, f.dv, at), first, s.keys, first_column, s.value_size);
}

template <class T> struct Kernels {
  using S = AttentionScore<T>;
  using In = AttentionMatrices<const T>;
  using Out = AttentionMatrices<T>;

  template <class F>
  static void start(void (*kernel)(F, int64_t), const F& f, int64_t length, int64_t columns) {
    const int64_t parts = (length + kTile - 1) / kTile;
    const dim3 grid(static_cast<unsigned>(f.s.batch * f.s.heads * parts),
                    static_cast<unsigned>((columns + kTile - 1) / kTile));
    if (grid.x > 0 && grid.y > 0) launch(kernel, grid, kBlock, Memory<S>::kBytes, f, parts);
  }
  static void forward(const AttentionShape& s, In q, In k, In v, AttentionMask<S> mask, Out out,
                      S* log_sums) {
    const FlashForward<T> f{s, q, k, v, mask, out, log_sums};
    if constexpr (is_half_type<T>)
      if (attend_on_tensor_cores(f)) return;
    start(attend<T>, f, s.queries, s.value_size);
  }
  static void backward(const AttentionShape& s, In g, In q, In k, In v, AttentionMask<S> mask,
                       In out, const S* log_sums, Out dq, Out dk, Out dv) {
    const int64_t rows = s.batch * s.heads * s.queries;
    const Workspace memory(static_cast<size_t>(rows) * sizeof(S));
    const FlashBackward<T> f{s, g, q, k, v, mask, out, log_sums, dq, dk, dv, memory.as<S>()};
    if constexpr (is_half_type<T>)
      if (backward_on_tensor_cores(f)) return;
    find_dots<1>(f);
    start(query_gradients<T>, f, s.queries, s.size);
    start(key_gradients<T>, f, s.keys, s.size > s.value_size ? s.size : s.value_size);
  }
};

template <class T> const FlashAttentionKernels<T> table{Kernels<T>::forward, Kernels<T>::backward};

}  // namespace

void add_attention_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<Half>), device_table(table<BFloat16>)});
}

}  // namespace taeda::cuda
