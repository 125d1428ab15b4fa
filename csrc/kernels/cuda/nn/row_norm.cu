// Normalisation of rows (layer, group, instance and RMS norm) and its gradient.
//
// A group of threads has a row. Where its registers hold it, memory is read once (`held`);
// otherwise sums and results are two walks over it, the second through the caches.
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/moments.h"
#include "kernels/cuda/nn/norm.h"
#include "kernels/cuda/nn/rows.h"

namespace taeda::cuda {
namespace {

template <class T> struct Rows {
  int64_t rows, n;  // n: elements of a row
  T eps;
  bool centered;
  // The parameters of a row's element i: those of channel (row % groups) * channels + i / spatial.
  // Null: 1 and 0.
  const T *weight, *bias;
  int64_t groups, channels, spatial;
  Divisor by_spatial;

  Rows(const RowNormShape& s, const T* weight, const T* bias)
      : rows(s.rows),
        n(s.channels * s.spatial),
        eps(static_cast<T>(s.eps)),
        centered(s.centered),
        weight(weight),
        bias(bias),
        groups(s.groups),
        channels(s.channels),
        spatial(s.spatial),
        by_spatial(s.spatial) {
    if (s.spatial > 1 && n >= kMostElements) missing_kernel();
  }

  __device__ int64_t first_channel(int64_t row) const {
    return groups == 1 ? 0 : row % groups * channels;
  }
  __device__ uint32_t channel(int64_t i) const {
    auto c = static_cast<uint32_t>(i);
    by_spatial.divide(c);
    return c;
  }
  // Those of elements i, i + 1, ...
  template <int N>
  __device__ __forceinline__ void parameters(const T* from, T absent, int64_t first, int64_t i,
                                             T (&to)[N]) const {
    if (!from) {
#pragma unroll
      for (T& v : to) v = absent;
    } else if (spatial == 1) {
      load_numbers<T, N>(from + first + i, to);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) to[j] = from[first + channel(i + j)];
    }
  }
};

template <class T> struct RowStats {
  T mean, rstd;
};
template <class T> __device__ RowStats<T> stats_of(const Rows<T>& s, T mean, T var) {
  return {mean, T(1) / ::sqrt((var < T(0) ? T(0) : var) + s.eps)};
}
template <class T> __device__ void store_stats(int64_t row, RowStats<T> stats, T* mean, T* rstd) {
  if (threadIdx.x != 0) return;
  mean[row] = stats.mean;
  rstd[row] = stats.rstd;
}

// ---- forward ----
template <class S, class T, int N>
__device__ __forceinline__ void put_normal(const Rows<T>& s, RowStats<T> stats, int64_t channel,
                                           S* row, int64_t i, const T (&x)[N]) {
  T w[N], b[N], y[N];
  s.parameters(s.weight, T(1), channel, i, w);
  s.parameters(s.bias, T(0), channel, i, b);
#pragma unroll
  for (int j = 0; j < N; ++j) y[j] = (x[j] - stats.mean) * stats.rstd * w[j] + b[j];
  store_numbers<S, N>(row + i, y);
}

// The mean is found first, then the squared distances from it; what the distances add up to makes
// up for its rounding.
template <class S, int N, int V, class T = Number<S>>
__global__ void __launch_bounds__(kMostHeld)
    normalize_held(const __grid_constant__ Rows<T> s, const S* x, S* y, T* mean, T* rstd) {
  const int64_t r = group_index(), begin = r * s.n;
  const int64_t packs = r < s.rows ? s.n / N : 0;
  const T count = static_cast<T>(s.n);
  Packs<S, N, V> held;
  held.load(x + begin, threadIdx.x, packs);
  T about = 0;
  if (s.centered) {
    T own = 0;
    held.each(threadIdx.x, packs, [&](int64_t, const T(&v)[N]) {
      for (const T e : v) own += e;
    });
    about = group_sum(own) / count;
  }
  Pair<T> own{0, 0};
  held.each(threadIdx.x, packs, [&](int64_t, const T(&v)[N]) {
    for (const T e : v) {
      const T apart = e - about;
      own.a += apart;
      own.b += apart * apart;
    }
  });
  own = group_sum(own);
  const T apart = s.centered ? own.a / count : T(0);
  const RowStats<T> stats = stats_of(s, about + apart, own.b / count - apart * apart);
  if (r >= s.rows) return;
  store_stats(r, stats, mean, rstd);
  const int64_t channel = s.first_channel(r);
  held.each(threadIdx.x, packs,
            [&](int64_t i, const T(&v)[N]) { put_normal(s, stats, channel, y + begin, i, v); });
}

template <class S, int N, class T = Number<S>>
__global__ void __launch_bounds__(kThreads, 2)
    normalize_long(const __grid_constant__ Rows<T> s, const S* x, S* y, T* mean, T* rstd) {
  const int64_t r = group_index(), begin = r * s.n;
  const int64_t packs = r < s.rows ? s.n / N : 0, step = int64_t{blockDim.x} * kAhead;
  Packs<S, N, kAhead> some;
  Moments own{0, 0, 0};
  for (int64_t at = threadIdx.x; at < packs; at += step) {
    some.load(x + begin, at, packs);
    MomentBatch<T> batch(number(some.v[0].v[0]));
    int count = 0;
    some.each(at, packs, [&](int64_t, const T(&v)[N]) {
      count += N;
      for (const T e : v) batch.add(e);
    });
    own = merged(own, batch.moments(count));
  }
  // Threads merge in orders of their own: all take what the first one has.
  own = group_first(group_all(own, merged));
  double var = own.m2 / own.count;
  if (!s.centered) {
    var += own.mean * own.mean;
    own.mean = 0;
  }
  const RowStats<T> stats = stats_of(s, static_cast<T>(own.mean), static_cast<T>(var));
  if (r >= s.rows) return;
  store_stats(r, stats, mean, rstd);
  const int64_t channel = s.first_channel(r);
  for (int64_t at = threadIdx.x; at < packs; at += step) {
    some.load(x + begin, at, packs);
    some.each(at, packs,
              [&](int64_t i, const T(&v)[N]) { put_normal(s, stats, channel, y + begin, i, v); });
  }
}

// ---- backward ----
// gx = rstd w g - a - (x - mean) b.
template <class T> struct RowTerms {
  T a, b;
};
template <class T> __device__ RowTerms<T> terms_of(const Rows<T>& s, T rstd, Pair<T> sums) {
  const T count = static_cast<T>(s.n);
  return {s.centered ? rstd * sums.a / count : T(0), rstd * rstd * rstd * (sums.b / count)};
}
template <class T, int N>
__device__ __forceinline__ void add_gradients(const Rows<T>& s, T mean, int64_t channel, int64_t i,
                                              const T (&g)[N], const T (&x)[N], Pair<T>& sums) {
  T w[N];
  s.parameters(s.weight, T(1), channel, i, w);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const T v = g[j] * w[j];
    sums.a += v;
    sums.b += v * (x[j] - mean);
  }
}
template <class S, class T, int N>
__device__ __forceinline__ void put_gradients(const Rows<T>& s, RowStats<T> stats,
                                              RowTerms<T> terms, int64_t channel, S* row, int64_t i,
                                              const T (&g)[N], const T (&x)[N]) {
  T w[N], gx[N];
  s.parameters(s.weight, T(1), channel, i, w);
#pragma unroll
  for (int j = 0; j < N; ++j)
    gx[j] = stats.rstd * (g[j] * w[j]) - terms.a - (x[j] - stats.mean) * terms.b;
  store_numbers<S, N>(row + i, gx);
}

template <class S, int N, int V, class T = Number<S>>
__global__ void __launch_bounds__(kMostHeld)
    gradients_held(const __grid_constant__ Rows<T> s, const S* g, const S* x, const T* mean,
                   const T* rstd, S* gx) {
  const int64_t r = group_index(), begin = r * s.n;
  const int64_t packs = r < s.rows ? s.n / N : 0;
  Packs<S, N, V> held_g, held_x;
  held_g.load(g + begin, threadIdx.x, packs);
  held_x.load(x + begin, threadIdx.x, packs);
  const RowStats<T> stats = r < s.rows ? RowStats<T>{mean[r], rstd[r]} : RowStats<T>{0, 0};
  const int64_t channel = s.first_channel(r);
  Pair<T> sums{0, 0};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const int64_t i = threadIdx.x + k * int64_t{blockDim.x};
    if (i >= packs) continue;
    T from_g[N], from_x[N];
    numbers<S, N>(held_g.v[k], from_g);
    numbers<S, N>(held_x.v[k], from_x);
    add_gradients(s, stats.mean, channel, i * N, from_g, from_x, sums);
  }
  const RowTerms<T> terms = terms_of(s, stats.rstd, group_sum(sums));
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const int64_t i = threadIdx.x + k * int64_t{blockDim.x};
    if (i >= packs) continue;
    T from_g[N], from_x[N];
    numbers<S, N>(held_g.v[k], from_g);
    numbers<S, N>(held_x.v[k], from_x);
    put_gradients(s, stats, terms, channel, gx + begin, i * N, from_g, from_x);
  }
}

template <class S, int N, class T = Number<S>>
__global__ void gradients_long(const __grid_constant__ Rows<T> s, const S* g, const S* x,
                               const T* mean, const T* rstd, S* gx) {
  const int64_t r = group_index(), begin = r * s.n;
  const int64_t packs = r < s.rows ? s.n / N : 0;
  const RowStats<T> stats = r < s.rows ? RowStats<T>{mean[r], rstd[r]} : RowStats<T>{0, 0};
  const int64_t channel = s.first_channel(r);
  Pair<double> own{0, 0};
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    T from_g[N], from_x[N];
    load_numbers<S, N>(g + begin + i * N, from_g);
    load_numbers<S, N>(x + begin + i * N, from_x);
    Pair<T> part{0, 0};
    add_gradients(s, stats.mean, channel, i * N, from_g, from_x, part);
    own = own + Pair<double>{part.a, part.b};
  }
  own = group_sum(own);
  const RowTerms<T> terms =
      terms_of(s, stats.rstd, Pair<T>{static_cast<T>(own.a), static_cast<T>(own.b)});
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    T from_g[N], from_x[N];
    load_numbers<S, N>(g + begin + i * N, from_g);
    load_numbers<S, N>(x + begin + i * N, from_x);
    put_gradients(s, stats, terms, channel, gx + begin, i * N, from_g, from_x);
  }
}

}  // namespace

template <class S>
void normalize_rows(const RowNormShape& shape, const S* x, const Number<S>* weight,
                    const Number<S>* bias, S* y, Number<S>* mean, Number<S>* rstd) {
  constexpr int N = kPack<S>;
  const Rows<Number<S>> s(shape, weight, bias);
  const int64_t packs = s.n / N;
  const auto run = [&](auto kernel, dim3 block) {
    launch(kernel, blocks_of(s.rows, block), block, 0, s, x, y, mean, rstd);
  };
  if (s.n % N != 0 || !aligned(x, y, weight, bias))
    return run(normalize_long<S, 1>, groups_for(s.n));
  if constexpr (!same_type<S, double>) {
    if (packs <= kMostHeld * 4) return run(normalize_held<S, N, 4>, block_for(packs, 4));
    if (packs <= kMostHeld * 8) return run(normalize_held<S, N, 8>, block_for(packs, 8));
  }
  run(normalize_long<S, N>, groups_for(packs));
}

template <class S>
void row_gradients(const RowNormShape& shape, const S* g, const S* x, const Number<S>* mean,
                   const Number<S>* rstd, const Number<S>* weight, S* gx) {
  constexpr int N = kPack<S>;
  const Rows<Number<S>> s(shape, weight, nullptr);
  const int64_t packs = s.n / N;
  const auto run = [&](auto kernel, dim3 block) {
    launch(kernel, blocks_of(s.rows, block), block, 0, s, g, x, mean, rstd, gx);
  };
  if (s.n % N != 0 || !aligned(g, x, weight, gx)) return run(gradients_long<S, 1>, groups_for(s.n));
  if constexpr (!same_type<S, double>) {
    if (packs <= kMostHeld * 4) return run(gradients_held<S, N, 4>, block_for(packs, 4));
  }
  run(gradients_long<S, N>, groups_for(packs));
}

template void normalize_rows<float>(const RowNormShape&, const float*, const float*, const float*,
                                    float*, float*, float*);
template void row_gradients<float>(const RowNormShape&, const float*, const float*, const float*,
                                   const float*, const float*, float*);
template void normalize_rows<double>(const RowNormShape&, const double*, const double*,
                                     const double*, double*, double*, double*);
template void row_gradients<double>(const RowNormShape&, const double*, const double*,
                                    const double*, const double*, const double*, double*);
template void normalize_rows<Half>(const RowNormShape&, const Half*, const float*, const float*,
                                   Half*, float*, float*);
template void row_gradients<Half>(const RowNormShape&, const Half*, const Half*, const float*,
                                  const float*, const float*, Half*);
template void normalize_rows<BFloat16>(const RowNormShape&, const BFloat16*, const float*,
                                       const float*, BFloat16*, float*, float*);
template void row_gradients<BFloat16>(const RowNormShape&, const BFloat16*, const BFloat16*,
                                      const float*, const float*, const float*, BFloat16*);

}  // namespace taeda::cuda
