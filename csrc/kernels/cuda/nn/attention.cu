// Attention by the online softmax (Milakov and Gimelshein 2018; Dao et al. 2022): a row of scores
// comes 32 at a time and is never whole in memory. The gradients compute it again.
#include "kernels/attention.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kLanes = 32, kRows = kThreads / kLanes;  // a block: kRows rows, kLanes threads each

template <class T> struct Attention {
  AttentionShape s;
  AttentionMatrices<const T> q, k, v, g;
  AttentionMask<T> mask;

  template <class M> __device__ auto* row_of(const M& m, int64_t at, int64_t row) const {
    return m.data + at / s.heads * m.batch + at % s.heads * m.head + row * m.row;
  }
  __device__ bool sees(int64_t query, int64_t key) const {
    return query < s.queries && key < s.keys && (!s.causal || key <= query);
  }
  __device__ static T dot(const T* a, const T* b, int64_t n) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }
  // -inf where the query does not see the key.
  __device__ T score(int64_t at, int64_t query, int64_t key) const {
    if (!sees(query, key)) return static_cast<T>(-portable::kInf);
    const T v = T(s.scale) * dot(row_of(q, at, query), row_of(k, at, key), s.size);
    return mask.data ? v + row_of(mask, at, query)[key * mask.column] : v;
  }
};

template <class T> __device__ bool is_hidden(T score) { return score == T(-portable::kInf); }
template <class T> __device__ T exp_of_score(T score, T most) {
  return is_hidden(score) ? T(0) : portable::exp(score - most);
}
template <class T> __device__ T larger(T a, T b) { return a < b ? b : a; }

// to[c] = to[c] * factor + the sum of weights[j] * row(j)[c], for the columns of this thread.
template <class T, class Row>
__device__ void add_rows(T* to, int64_t columns, T factor, const T* weights, int64_t count,
                         Row row) {
  for (int64_t c = threadIdx.x; c < columns; c += kLanes) {
    T sum = to[c] * factor;
    for (int64_t j = 0; j < count; ++j) sum += weights[j] * row(j)[c];
    to[c] = sum;
  }
}
template <class T> __device__ void clear(T* to, int64_t columns) {
  for (int64_t c = threadIdx.x; c < columns; c += kLanes) to[c] = T(0);
}

template <class T>
__global__ void attend(const __grid_constant__ Attention<T> a, AttentionMatrices<T> out) {
  __shared__ T weights[kRows][kLanes];
  const AttentionShape& s = a.s;
  const int64_t row = group_index(), at = row / s.queries, query = row % s.queries;
  const bool inside = at < s.batch * s.heads;
  T* own = static_cast<T*>(dynamic_shared()) + threadIdx.y * s.value_size;
  clear(own, s.value_size);
  T most = T(-portable::kInf), sum = 0;
  for (int64_t first = 0; first < s.keys; first += kLanes) {
    const T score = inside ? a.score(at, query, first + threadIdx.x) : T(-portable::kInf);
    const T now = larger(most, group_all(score, larger<T>));
    const T weight = exp_of_score(score, now), factor = exp_of_score(most, now);
    weights[threadIdx.y][threadIdx.x] = weight;
    sum = sum * factor + group_sum(weight);
    most = now;
    const int64_t count = inside ? (s.keys - first < kLanes ? s.keys - first : kLanes) : 0;
    add_rows(own, s.value_size, factor, weights[threadIdx.y], count,
             [&](int64_t j) { return a.row_of(a.v, at, first + j); });
    __syncthreads();
  }
  if (!inside) return;
  T* to = a.row_of(out, at, query);
  for (int64_t c = threadIdx.x; c < s.value_size; c += kLanes)
    to[c] = sum == T(0) ? T(0) : own[c] / sum;
}

// What the gradients need of each row of scores.
template <class T> struct RowStats {
  T most, sum;
  T dot;  // the sum of the weights times their gradients
};
template <class T> __device__ T weight_of(T score, const RowStats<T>& r) {
  return r.sum == T(0) ? T(0) : exp_of_score(score, r.most) / r.sum;
}

// dq, and the rows' numbers.
template <class T>
__global__ void query_gradients(const __grid_constant__ Attention<T> a, AttentionMatrices<T> dq,
                                RowStats<T>* stats) {
  __shared__ T weights[kRows][kLanes];
  const AttentionShape& s = a.s;
  const int64_t row = group_index(), at = row / s.queries, query = row % s.queries;
  const bool inside = at < s.batch * s.heads;
  const auto score_of = [&](int64_t key) {
    return inside ? a.score(at, query, key) : T(-portable::kInf);
  };
  const auto gradient_of = [&](int64_t key) {  // of the weight
    return inside && a.sees(query, key)
               ? Attention<T>::dot(a.row_of(a.g, at, query), a.row_of(a.v, at, key), s.value_size)
               : T(0);
  };
  RowStats<T> r{T(-portable::kInf), T(0), T(0)};
  for (int64_t key = threadIdx.x; key < s.keys; key += kLanes)
    r.most = larger(r.most, score_of(key));
  r.most = group_all(r.most, larger<T>);
  for (int64_t key = threadIdx.x; key < s.keys; key += kLanes)
    r.sum += exp_of_score(score_of(key), r.most);
  r.sum = group_sum(r.sum);
  for (int64_t key = threadIdx.x; key < s.keys; key += kLanes)
    r.dot += weight_of(score_of(key), r) * gradient_of(key);
  r.dot = group_sum(r.dot);
  if (inside && threadIdx.x == 0) stats[row] = r;
  T* own = static_cast<T*>(dynamic_shared()) + threadIdx.y * s.size;
  clear(own, s.size);
  for (int64_t first = 0; first < s.keys; first += kLanes) {
    const int64_t key = first + threadIdx.x;
    weights[threadIdx.y][threadIdx.x] =
        T(s.scale) * weight_of(score_of(key), r) * (gradient_of(key) - r.dot);
    __syncthreads();
    const int64_t count = inside ? (s.keys - first < kLanes ? s.keys - first : kLanes) : 0;
    add_rows(own, s.size, T(1), weights[threadIdx.y], count,
             [&](int64_t j) { return a.row_of(a.k, at, first + j); });
    __syncthreads();
  }
  if (!inside) return;
  T* to = a.row_of(dq, at, query);
  for (int64_t c = threadIdx.x; c < s.size; c += kLanes) to[c] = own[c];
}

// dk and dv: a row of them for each key.
template <class T>
__global__ void key_gradients(const __grid_constant__ Attention<T> a, const RowStats<T>* stats,
                              AttentionMatrices<T> dk, AttentionMatrices<T> dv) {
  __shared__ T weights[kRows][kLanes];
  __shared__ T changes[kRows][kLanes];
  const AttentionShape& s = a.s;
  const int64_t row = group_index(), at = row / s.keys, key = row % s.keys;
  const bool inside = at < s.batch * s.heads;
  T* own_k = static_cast<T*>(dynamic_shared()) + threadIdx.y * (s.size + s.value_size);
  T* own_v = own_k + s.size;
  clear(own_k, s.size + s.value_size);
  for (int64_t first = 0; first < s.queries; first += kLanes) {
    const int64_t query = first + threadIdx.x;
    T weight = 0, change = 0;
    if (inside && a.sees(query, key)) {
      const RowStats<T> r = stats[at * s.queries + query];
      weight = weight_of(a.score(at, query, key), r);
      const T gradient =
          Attention<T>::dot(a.row_of(a.g, at, query), a.row_of(a.v, at, key), s.value_size);
      change = T(s.scale) * weight * (gradient - r.dot);
    }
    weights[threadIdx.y][threadIdx.x] = weight;
    changes[threadIdx.y][threadIdx.x] = change;
    __syncthreads();
    const int64_t count = inside ? (s.queries - first < kLanes ? s.queries - first : kLanes) : 0;
    add_rows(own_k, s.size, T(1), changes[threadIdx.y], count,
             [&](int64_t i) { return a.row_of(a.q, at, first + i); });
    add_rows(own_v, s.value_size, T(1), weights[threadIdx.y], count,
             [&](int64_t i) { return a.row_of(a.g, at, first + i); });
    __syncthreads();
  }
  if (!inside) return;
  T *to_k = a.row_of(dk, at, key), *to_v = a.row_of(dv, at, key);
  for (int64_t c = threadIdx.x; c < s.size; c += kLanes) to_k[c] = own_k[c];
  for (int64_t c = threadIdx.x; c < s.value_size; c += kLanes) to_v[c] = own_v[c];
}

dim3 block() { return dim3(kLanes, kRows); }
// Shared memory of a block whose rows have so many sums; what no GPU has without asking is missing.
template <class T> size_t shared_for(int64_t sums) {
  const auto bytes = static_cast<size_t>(kRows * sums) * sizeof(T);
  if (bytes > size_t{32} << 10) missing_kernel();
  return bytes;
}

template <class T> struct Kernels {
  using In = AttentionMatrices<const T>;
  using Out = AttentionMatrices<T>;

  static void attention(const AttentionShape& s, In q, In k, In v, AttentionMask<T> mask, Out out) {
    const int64_t rows = s.batch * s.heads * s.queries;
    if (rows == 0) return;
    launch(attend<T>, blocks_of(rows, block()), block(), shared_for<T>(s.value_size),
           Attention<T>{s, q, k, v, {}, mask}, out);
  }
  static void backward(const AttentionShape& s, In g, In q, In k, In v, AttentionMask<T> mask,
                       Out dq, Out dk, Out dv) {
    const int64_t rows = s.batch * s.heads * s.queries, columns = s.batch * s.heads * s.keys;
    if (rows == 0 || columns == 0) return;
    const size_t shared = shared_for<T>(s.size + s.value_size);
    const Workspace memory(static_cast<size_t>(rows) * sizeof(RowStats<T>));
    auto* stats = memory.as<RowStats<T>>();
    const Attention<T> a{s, q, k, v, g, mask};
    launch(query_gradients<T>, blocks_of(rows, block()), block(), shared, a, dq, stats);
    launch(key_gradients<T>, blocks_of(columns, block()), block(), shared, a, stats, dk, dv);
  }
};

template <class T> const AttentionKernels<T> table{Kernels<T>::attention, Kernels<T>::backward};

}  // namespace

void add_attention_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
