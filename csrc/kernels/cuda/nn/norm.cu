// The table of norms: of rows (layer, group, instance and RMS norm) and of channels (batch norm).
#include "kernels/cuda/nn/norm.h"

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// f(Tag<S>) for elements of `dtype`, which are computed in T.
template <class T, class F> void visit_elements(DType dtype, F f) {
  if constexpr (same_type<T, float>) {
    if (dtype == DType::Float16) return f(Tag<Half>());
    if (dtype == DType::BFloat16) return f(Tag<BFloat16>());
  }
  f(Tag<T>());
}

// ---- rows ----
template <class T>
void row_norm(const RowNormShape& s, DType dtype, const void* x, const T* weight, const T* bias,
              void* y, T* mean, T* rstd) {
  if (s.rows == 0) return;
  visit_elements<T>(dtype, [&]<class S>(Tag<S>) {
    normalize_rows<S>(s, static_cast<const S*>(x), weight, bias, static_cast<S*>(y), mean, rstd);
  });
}
template <class T>
void row_norm_backward(const RowNormShape& s, DType dtype, const void* g, const void* x,
                       const T* mean, const T* rstd, const T* weight, void* gx, T* gw, T* gb) {
  const int64_t channels = s.groups * s.channels;
  visit_elements<T>(dtype, [&]<class S>(Tag<S>) {
    const auto* from_g = static_cast<const S*>(g);
    const auto* from_x = static_cast<const S*>(x);
    if (s.rows > 0) row_gradients<S>(s, from_g, from_x, mean, rstd, weight, static_cast<S*>(gx));
    if (gw && channels > 0)
      channel_gradients<S>({s.rows / s.groups, channels, s.spatial},
                           {mean, rstd, s.groups, s.channels}, from_g, from_x, gw, gb);
  });
}

// ---- batch norm ----
ChannelShape channel_shape(const BatchNormShape& s) {
  if (s.spatial == 0) return {0, s.channels, 1};
  return {s.batch, s.channels, s.spatial};
}
// Which channels elements are of.
struct Channels {
  int64_t count, channels, spatial;  // count: of all elements
  Divisor by_spatial, by_channels;

  explicit Channels(const BatchNormShape& s)
      : count(s.batch * s.channels * s.spatial),
        channels(s.channels),
        spatial(s.spatial),
        by_spatial(s.spatial),
        by_channels(s.channels) {
    if (s.channels >= kMostElements || s.spatial >= kMostElements) missing_kernel();
  }
  struct Place {
    uint32_t channel, within;
  };
  __device__ Place place(int64_t i) const {
    const auto within = static_cast<uint32_t>(by_spatial.divide(i));
    return {static_cast<uint32_t>(by_channels.divide(i)), within};
  }
  // What the channels of N neighbours have. Null: `absent`.
  template <class T, int N>
  __device__ __forceinline__ void values(const T* from, T absent, Place at, T (&to)[N]) const {
    if (from && spatial == 1) return load_numbers<T, N>(from + at.channel, to);
    const T first = from ? from[at.channel] : absent;
#pragma unroll
    for (T& v : to) v = first;
    if (!from || at.within + N <= spatial) return;
#pragma unroll
    for (T& v : to) {
      v = from[at.channel];
      if (++at.within < spatial) continue;
      at.within = 0;
      if (++at.channel == channels) at.channel = 0;
    }
  }
  // How many neighbours a thread may take.
  template <class S, class F, class... P> void by_width(F run, const P*... memory) const {
    constexpr int N = kPack<S>;
    const bool whole = count % N == 0 && (spatial > 1 || channels % N == 0);
    if (whole && aligned(memory...)) run(Tag<std::integral_constant<int, N>>());
    else run(Tag<std::integral_constant<int, 1>>());
  }
};

template <class S, int N, class T = Number<S>>
__global__ void normalize(const __grid_constant__ Channels s, const S* x, const T* mean,
                          const T* invstd, const T* weight, const T* bias, S* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < s.count; i += step) {
    T v[N], m[N], r[N], w[N], b[N];
    load_numbers<S, N>(x + i, v);
    const auto place = s.place(i);
    s.values(mean, T(0), place, m);
    s.values(invstd, T(0), place, r);
    s.values(weight, T(1), place, w);
    s.values(bias, T(0), place, b);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = (v[j] - m[j]) * (r[j] * w[j]) + b[j];
    store_numbers<S, N>(y + i, v);
  }
}
template <class S, class T = Number<S>>
void normalize_channels(const BatchNormShape& shape, const S* x, const T* mean, const T* invstd,
                        const T* weight, const T* bias, S* y) {
  if (shape.batch * shape.channels * shape.spatial == 0) return;
  const Channels s(shape);
  const auto run = [&]<class Width>(Tag<Width>) {
    launch(normalize<S, Width::value>, blocks_for(s.count / Width::value), kThreads, 0, s, x, mean,
           invstd, weight, bias, y);
  };
  s.by_width<S>(run, x, y, mean, invstd, weight, bias);
}

template <class S, class T = Number<S>>
void batch_norm_training(const BatchNormShape& s, const S* x, const T* weight, const T* bias,
                         T* mean, T* var, T* invstd, S* y) {
  if (s.channels == 0) return;
  channel_moments<S>(channel_shape(s), s.eps, x, mean, var, invstd);
  normalize_channels(s, x, mean, invstd, weight, bias, y);
}
template <class S, class T = Number<S>>
void batch_norm(const BatchNormShape& s, const S* x, const T* mean, const T* var, const T* weight,
                const T* bias, T* invstd, S* y) {
  const double eps = s.eps;
  each(s.channels, [=] __device__(int64_t c) {
    invstd[c] = static_cast<T>(1 / ::sqrt(static_cast<double>(var[c]) + eps));
  });
  normalize_channels(s, x, mean, invstd, weight, bias, y);
}
template <class T>
void update_running(int64_t channels, double momentum, double factor, const T* value, T* running) {
  each(channels, [=] __device__(int64_t c) {
    const T v = static_cast<T>(value[c] * factor);
    running[c] = static_cast<T>((1 - momentum) * running[c] + momentum * v);
  });
}

// gx = invstd w (g - (gb + (x - mean) invstd gw) / n), without gb and gw where the moments are
// given.
template <class S, int N, class T = Number<S>>
__global__ void batch_gradients(const __grid_constant__ Channels s, T one_nth, const S* g,
                                const S* x, const T* mean, const T* invstd, const T* weight,
                                const T* gw, const T* gb, S* gx) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < s.count; i += step) {
    T v[N], from_x[N], m[N], r[N], w[N], sum_gx[N], sum_g[N];
    load_numbers<S, N>(g + i, v);
    load_numbers<S, N>(x + i, from_x);
    const auto place = s.place(i);
    s.values(mean, T(0), place, m);
    s.values(invstd, T(0), place, r);
    s.values(weight, T(1), place, w);
    s.values(gw, T(0), place, sum_gx);
    s.values(gb, T(0), place, sum_g);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const T scale = r[j] * w[j];
      v[j] = scale * v[j] - scale * sum_g[j] * one_nth -
             (from_x[j] - m[j]) * (scale * r[j] * sum_gx[j] * one_nth);
    }
    store_numbers<S, N>(gx + i, v);
  }
}

template <class S, class T = Number<S>>
void batch_norm_backward(const BatchNormShape& shape, bool training, const S* g, const S* x,
                         const T* mean, const T* invstd, const T* weight, S* gx, T* gw, T* gb) {
  if (shape.channels == 0) return;
  const auto channels = static_cast<size_t>(shape.channels);
  const Workspace memory(2 * channels * sizeof(T));
  T* sum_gx = gw ? gw : memory.as<T>();
  T* sum_g = gb ? gb : memory.as<T>() + channels;
  channel_gradients<S>(channel_shape(shape), {mean, invstd, 0, 1}, g, x, sum_gx, sum_g);
  if (!gx || shape.batch * shape.spatial == 0) return;
  const Channels s(shape);
  const auto one_nth = static_cast<T>(1.0 / static_cast<double>(shape.batch * shape.spatial));
  if (!training) sum_gx = sum_g = nullptr;
  const auto run = [&]<class Width>(Tag<Width>) {
    launch(batch_gradients<S, Width::value>, blocks_for(s.count / Width::value), kThreads, 0, s,
           one_nth, g, x, mean, invstd, weight, sum_gx, sum_g, gx);
  };
  s.by_width<S>(run, g, x, mean, invstd, weight, sum_gx, sum_g, gx);
}

template <class T> const NormKernels<T> row_table{row_norm<T>, row_norm_backward<T>};
template <class S>
const BatchNormKernels<S> batch_table{batch_norm_training<S>, update_running<Number<S>>,
                                      batch_norm<S>, batch_norm_backward<S>};

}  // namespace

void add_norm_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(row_table<float>), device_table(row_table<double>),
                       device_table(batch_table<float>), device_table(batch_table<double>),
                       device_table(batch_table<Half>), device_table(batch_table<BFloat16>)});
}

}  // namespace taeda::cuda
