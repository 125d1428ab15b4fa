// softmax, log_softmax and their derivatives, along the middle of (outer, size, inner).
//
// Rows (inner is 1) are walked over by groups, as those of norms are: once where registers hold
// them. Otherwise neighbouring threads have neighbouring lines, and those of one threadIdx.x share
// one.
#include "kernels/softmax.h"

#include "kernels/cuda/nn/rows.h"
#include "kernels/cuda/nn/softmax.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// y of x, where the sum of all exp(x - most) is known.
template <class T> struct Softmax {
  bool log;
  T most, log_sum, scale;
  __device__ Softmax(bool log, SumOfExp<T> all)
      : log(log),
        most(all.most),
        log_sum(log ? ::log(all.sum) : T(0)),
        scale(T(1) / all.sum) {}
  __device__ __forceinline__ T operator()(T x) const {
    return log ? x - most - log_sum : ::exp(x - most) * scale;
  }
};
// What is summed for the gradient, and the gradient.
template <class T> __device__ __forceinline__ T gradient_term(bool log, T g, T y) {
  return log ? g : g * y;
}
template <class T> __device__ __forceinline__ T gradient(bool log, T g, T y, T sum) {
  return log ? g - ::exp(y) * sum : y * (g - sum);
}

// ---- rows ----
template <class S, int N, int V, class T = Number<S>>
__global__ void __launch_bounds__(kMostHeld)
    softmax_held(int64_t rows, int64_t n, bool log, const S* x, S* y) {
  const int64_t r = group_index();
  const int64_t packs = r < rows ? n / N : 0;
  Packs<S, N, V> held;
  held.load(x + r * n, threadIdx.x, packs);
  SumOfExp<T> all{SumOfExp<T>::kLeast, 0};
  held.each(threadIdx.x, packs, [&](int64_t, const T(&v)[N]) {
    for (const T e : v) all.most = e > all.most ? e : all.most;
  });
  all.most = group_all(all.most, [](T a, T b) { return a > b ? a : b; });
  T exps[V][N];
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if (threadIdx.x + k * int64_t{blockDim.x} >= packs) continue;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      exps[k][j] = ::exp(number(held.v[k].v[j]) - all.most);
      all.sum += exps[k][j];
    }
  }
  all.sum = group_sum(all.sum);
  if (r >= rows) return;
  const Softmax<T> f(log, all);
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const int64_t i = threadIdx.x + k * int64_t{blockDim.x};
    if (i >= packs) continue;
    T v[N];
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = log ? f(number(held.v[k].v[j])) : exps[k][j] * f.scale;
    store_numbers<S, N>(y + r * n + i * N, v);
  }
}

template <class S, int N, class T = Number<S>>
__global__ void softmax_long(int64_t rows, int64_t n, bool log, const S* x, S* y) {
  const int64_t r = group_index();
  const int64_t packs = r < rows ? n / N : 0, step = int64_t{blockDim.x} * kAhead;
  Packs<S, N, kAhead> some;
  auto own = SumOfExp<T>::start();
  for (int64_t at = threadIdx.x; at < packs; at += step) {
    some.load(x + r * n, at, packs);
    some.each(at, packs, [&](int64_t, const T(&v)[N]) { own.add(v); });
  }
  const Softmax<T> f(log, group_all(own, SumOfExp<T>::merge));
  for (int64_t at = threadIdx.x; at < packs; at += step) {
    some.load(x + r * n, at, packs);
    some.each(at, packs, [&](int64_t i, const T(&v)[N]) {
      T out[N];
#pragma unroll
      for (int j = 0; j < N; ++j) out[j] = f(v[j]);
      store_numbers<S, N>(y + r * n + i, out);
    });
  }
}

template <class S, int N, int V, class T = Number<S>>
__global__ void __launch_bounds__(kMostHeld)
    gradient_held(int64_t rows, int64_t n, bool log, const S* g, const S* y, S* gx) {
  const int64_t r = group_index();
  const int64_t packs = r < rows ? n / N : 0;
  Packs<S, N, V> held_g, held_y;
  held_g.load(g + r * n, threadIdx.x, packs);
  held_y.load(y + r * n, threadIdx.x, packs);
  T sum = 0;
#pragma unroll
  for (int k = 0; k < V; ++k)
#pragma unroll
    for (int j = 0; j < N; ++j)  // zeros where there is no pack
      sum += gradient_term(log, number(held_g.v[k].v[j]), number(held_y.v[k].v[j]));
  sum = group_sum(sum);
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const int64_t i = threadIdx.x + k * int64_t{blockDim.x};
    if (i >= packs) continue;
    T v[N];
#pragma unroll
    for (int j = 0; j < N; ++j)
      v[j] = gradient(log, number(held_g.v[k].v[j]), number(held_y.v[k].v[j]), sum);
    store_numbers<S, N>(gx + r * n + i * N, v);
  }
}

template <class S, int N, class T = Number<S>>
__global__ void gradient_long(int64_t rows, int64_t n, bool log, const S* g, const S* y, S* gx) {
  const int64_t r = group_index(), begin = r * n;
  const int64_t packs = r < rows ? n / N : 0;
  double own = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    T from_g[N], from_y[N], part = 0;
    load_numbers<S, N>(g + begin + i * N, from_g);
    load_numbers<S, N>(y + begin + i * N, from_y);
#pragma unroll
    for (int j = 0; j < N; ++j) part += gradient_term(log, from_g[j], from_y[j]);
    own += part;
  }
  const T sum = static_cast<T>(group_sum(own));
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    T from_g[N], from_y[N];
    load_numbers<S, N>(g + begin + i * N, from_g);
    load_numbers<S, N>(y + begin + i * N, from_y);
#pragma unroll
    for (int j = 0; j < N; ++j) from_g[j] = gradient(log, from_g[j], from_y[j], sum);
    store_numbers<S, N>(gx + begin + i * N, from_g);
  }
}

// ---- columns ----
struct Column {
  bool inside;
  int64_t begin;
};
__device__ inline Column column_of(const SoftmaxShape& s) {
  const int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  return {line < s.outer * s.inner, line / s.inner * s.size * s.inner + line % s.inner};
}
// What the threads of a column have, merged in order.
template <class A, class Merge> __device__ A column_all(A own, Merge merge) {
  if (blockDim.y == 1) return own;
  __shared__ A all[kThreads];
  all[threadIdx.y * blockDim.x + threadIdx.x] = own;
  __syncthreads();
  own = all[threadIdx.x];
#pragma unroll 1
  for (unsigned y = 1; y < blockDim.y; ++y) own = merge(own, all[y * blockDim.x + threadIdx.x]);
  return own;
}

template <class S, class T = Number<S>>
__global__ void softmax_columns(const __grid_constant__ SoftmaxShape s, bool log, const S* x,
                                S* y) {
  const Column column = column_of(s);
  const int64_t size = column.inside ? s.size : 0, step = blockDim.y;
  auto own = SumOfExp<T>::start();
  for (int64_t i = threadIdx.y; i < size; i += kAhead * step) {
    T v[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const bool here = i + k * step < size;
      v[k] = here ? number(x[column.begin + (i + k * step) * s.inner]) : SumOfExp<T>::kLeast;
    }
    own.add(v);
  }
  const Softmax<T> f(log, column_all(own, SumOfExp<T>::merge));
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < size; i += step) {
    const int64_t at = column.begin + i * s.inner;
    y[at] = rounded<S>(f(number(x[at])));
  }
}
template <class S, class T = Number<S>>
__global__ void gradient_columns(const __grid_constant__ SoftmaxShape s, bool log, const S* g,
                                 const S* y, S* gx) {
  const Column column = column_of(s);
  const int64_t size = column.inside ? s.size : 0, step = blockDim.y;
  T own = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < size; i += step) {
    const int64_t at = column.begin + i * s.inner;
    own += gradient_term(log, number(g[at]), number(y[at]));
  }
  const T sum = column_all(own, [](T a, T b) { return a + b; });
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < size; i += step) {
    const int64_t at = column.begin + i * s.inner;
    gx[at] = rounded<S>(gradient(log, number(g[at]), number(y[at]), sum));
  }
}

// ---- which kernel ----
dim3 column_block(const SoftmaxShape& s) {
  unsigned across = kWarp;
  while (across < kThreads && kThreads / across > s.size) across *= 2;
  return dim3(across, kThreads / across);
}
unsigned column_blocks(const SoftmaxShape& s, dim3 block) {
  return static_cast<unsigned>((s.outer * s.inner + block.x - 1) / block.x);
}

template <class S> void softmax(const SoftmaxShape& s, bool log, const S* x, S* y) {
  if (s.outer * s.size * s.inner == 0) return;
  if (s.inner > 1) {
    const dim3 block = column_block(s);
    return launch(softmax_columns<S>, column_blocks(s, block), block, 0, s, log, x, y);
  }
  constexpr int N = kPack<S>;
  const int64_t packs = s.size / N;
  const auto run = [&](auto kernel, dim3 block) {
    launch(kernel, blocks_of(s.outer, block), block, 0, s.outer, s.size, log, x, y);
  };
  if (s.size % N != 0 || !aligned(x, y)) return run(softmax_long<S, 1>, groups_for(s.size));
  if constexpr (!same_type<S, double>) {
    if (packs <= kMostHeld * 4) return run(softmax_held<S, N, 4>, block_for(packs, 4));
  }
  run(softmax_long<S, N>, groups_for(packs));
}
template <class S>
void softmax_backward(const SoftmaxShape& s, bool log, const S* g, const S* y, S* gx) {
  if (s.outer * s.size * s.inner == 0) return;
  if (s.inner > 1) {
    const dim3 block = column_block(s);
    return launch(gradient_columns<S>, column_blocks(s, block), block, 0, s, log, g, y, gx);
  }
  constexpr int N = kPack<S>;
  const int64_t packs = s.size / N;
  const auto run = [&](auto kernel, dim3 block) {
    launch(kernel, blocks_of(s.outer, block), block, 0, s.outer, s.size, log, g, y, gx);
  };
  if (s.size % N != 0 || !aligned(g, y, gx)) return run(gradient_long<S, 1>, groups_for(s.size));
  if constexpr (!same_type<S, double>) {
    if (packs <= kMostHeld * 4) return run(gradient_held<S, N, 4>, block_for(packs, 4));
  }
  run(gradient_long<S, N>, groups_for(packs));
}

template <class S> const SoftmaxKernels<S> table{softmax<S>, softmax_backward<S>};

}  // namespace

void add_softmax_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<Half>), device_table(table<BFloat16>)});
}

}  // namespace taeda::cuda
