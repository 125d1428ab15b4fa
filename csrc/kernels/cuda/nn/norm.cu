// Normalisation of rows (layer, group, instance and RMS norm) and of channels (batch norm). Sums
// are in double; all are added in a fixed order.
#include "kernels/norm.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// Elements of T, or of half precision where T is float.
template <class T> struct Elements {
  char* data;
  DType dtype;
  Elements(DType dtype, const void* data)
      : data(static_cast<char*>(const_cast<void*>(data))),
        dtype(dtype) {}
  __device__ T operator[](int64_t i) const { return load<T>(data + i * size_of(dtype), dtype); }
  __device__ void put(int64_t i, T v) const { store(data + i * size_of(dtype), dtype, v); }
};

template <class T>
__global__ void normalize_rows(const __grid_constant__ RowNormShape s, Elements<T> x,
                               const T* weight, const T* bias, Elements<T> y, T* mean, T* rstd) {
  const int64_t r = group_index(), n = s.channels * s.spatial, begin = r * n;
  const bool inside = r < s.rows;
  double own = 0;
  for (int64_t i = threadIdx.x; inside && s.centered && i < n; i += blockDim.x) own += x[begin + i];
  const double m = group_sum(own) / static_cast<double>(n);
  own = 0;
  for (int64_t i = threadIdx.x; inside && i < n; i += blockDim.x) {
    const double apart = x[begin + i] - m;
    own += apart * apart;
  }
  const double scale = 1 / ::sqrt(group_sum(own) / static_cast<double>(n) + s.eps);
  if (!inside) return;
  if (threadIdx.x == 0) {
    mean[r] = static_cast<T>(m);
    rstd[r] = static_cast<T>(scale);
  }
  const int64_t first = r % s.groups * s.channels;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const int64_t c = first + i / s.spatial;
    const T v = (x[begin + i] - static_cast<T>(m)) * static_cast<T>(scale);
    y.put(begin + i, v * (weight ? weight[c] : T(1)) + (bias ? bias[c] : T(0)));
  }
}

template <class T>
__global__ void row_gradients(const __grid_constant__ RowNormShape s, Elements<T> g, Elements<T> x,
                              const T* mean, const T* rstd, const T* weight, Elements<T> gx) {
  const int64_t r = group_index(), n = s.channels * s.spatial, begin = r * n;
  const bool inside = r < s.rows;
  const int64_t first = r % s.groups * s.channels;
  const auto weighted = [&](int64_t i) {
    return g[begin + i] * (weight ? weight[first + i / s.spatial] : T(1));
  };
  double sum_g = 0, sum_gx = 0;
  for (int64_t i = threadIdx.x; inside && i < n; i += blockDim.x) {
    const double v = weighted(i);
    sum_g += v;
    sum_gx += v * (x[begin + i] - mean[r]);
  }
  sum_g = group_sum(sum_g);
  sum_gx = group_sum(sum_gx);
  if (!inside) return;
  const double count = static_cast<double>(n), scale = rstd[r];
  const auto a = static_cast<T>(s.centered ? scale * sum_g / count : 0),
             b = static_cast<T>(scale * scale * scale * sum_gx / count);
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    gx.put(begin + i, rstd[r] * weighted(i) - a - (x[begin + i] - mean[r]) * b);
}

// ---- sums over channels ----
// A block has threadIdx.y channels; the threads of a group add up a channel's elements. Where
// neighbours in memory are of different channels, so are neighbouring threads: threadIdx.x and y
// change places.
struct ChannelPlace {
  int64_t channel;
  unsigned thread, threads;  // of those that add up the channel
};
inline constexpr unsigned kAcross = 32;
inline dim3 channel_block(int64_t spatial) {
  return spatial == 1 ? dim3(kAcross, kThreads / kAcross) : dim3(1, kThreads);
}
inline unsigned channel_blocks(int64_t channels, dim3 block) {
  return static_cast<unsigned>((channels + block.x - 1) / block.x);
}
__device__ inline ChannelPlace channel_place() {
  return {int64_t{blockIdx.x} * blockDim.x + threadIdx.x, threadIdx.y, blockDim.y};
}
__device__ inline double channel_sum(double own) {
  __shared__ double all[kThreads];
  double* column = all + threadIdx.x;
  column[threadIdx.y * blockDim.x] = own;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      column[threadIdx.y * blockDim.x] += column[(threadIdx.y + half) * blockDim.x];
  }
  __syncthreads();
  const double result = column[0];
  __syncthreads();
  return result;
}

template <class T>
__global__ void row_weight_gradients(const __grid_constant__ RowNormShape s, Elements<T> g,
                                     Elements<T> x, const T* mean, const T* rstd, T* gw, T* gb) {
  const ChannelPlace place = channel_place();
  const bool inside = place.channel < s.groups * s.channels;
  const int64_t group = place.channel / s.channels, c = place.channel % s.channels;
  const int64_t rows = (s.rows - group + s.groups - 1) / s.groups;
  double sum_g = 0, sum_gx = 0;
  for (int64_t i = place.thread; inside && i < rows * s.spatial; i += place.threads) {
    const int64_t r = group + i / s.spatial * s.groups;
    const int64_t at = (r * s.channels + c) * s.spatial + i % s.spatial;
    const double v = g[at];
    sum_g += v;
    sum_gx += v * (x[at] - mean[r]) * rstd[r];
  }
  sum_g = channel_sum(sum_g);
  sum_gx = channel_sum(sum_gx);
  if (!inside || place.thread != 0) return;
  gw[place.channel] = static_cast<T>(sum_gx);
  gb[place.channel] = static_cast<T>(sum_g);
}

template <class T>
void row_norm(const RowNormShape& s, DType dtype, const void* x, const T* weight, const T* bias,
              void* y, T* mean, T* rstd) {
  if (s.rows == 0) return;
  const dim3 block = groups_for(s.channels * s.spatial);
  launch(normalize_rows<T>, blocks_of(s.rows, block), block, 0, s, Elements<T>(dtype, x), weight,
         bias, Elements<T>(dtype, y), mean, rstd);
}
template <class T>
void row_norm_backward(const RowNormShape& s, DType dtype, const void* g, const void* x,
                       const T* mean, const T* rstd, const T* weight, void* gx, T* gw, T* gb) {
  const Elements<T> from_g(dtype, g), from_x(dtype, x), to(dtype, gx);
  const dim3 block = groups_for(s.channels * s.spatial);
  if (s.rows > 0)
    launch(row_gradients<T>, blocks_of(s.rows, block), block, 0, s, from_g, from_x, mean, rstd,
           weight, to);
  if (!gw || s.groups * s.channels == 0) return;
  const dim3 columns = channel_block(s.spatial);
  launch(row_weight_gradients<T>, channel_blocks(s.groups * s.channels, columns), columns, 0, s,
         from_g, from_x, mean, rstd, gw, gb);
}

// ---- batch norm ----

__device__ int64_t place_in_batch(const BatchNormShape& s, int64_t c, int64_t i) {
  return (i / s.spatial * s.channels + c) * s.spatial + i % s.spatial;
}

template <class T>
__global__ void batch_moments(const __grid_constant__ BatchNormShape s, const T* x, T* mean, T* var,
                              T* invstd) {
  const ChannelPlace place = channel_place();
  const bool inside = place.channel < s.channels;
  const int64_t n = s.batch * s.spatial;
  double own = 0;
  for (int64_t i = place.thread; inside && i < n; i += place.threads)
    own += x[place_in_batch(s, place.channel, i)];
  const double m = channel_sum(own) / static_cast<double>(n);
  own = 0;
  for (int64_t i = place.thread; inside && i < n; i += place.threads) {
    const double apart = x[place_in_batch(s, place.channel, i)] - m;
    own += apart * apart;
  }
  const double v = channel_sum(own) / static_cast<double>(n);
  if (!inside || place.thread != 0) return;
  mean[place.channel] = static_cast<T>(m);
  var[place.channel] = static_cast<T>(v);
  invstd[place.channel] =
      static_cast<T>(1 / ::sqrt(static_cast<double>(static_cast<T>(v)) + s.eps));
}

template <class T>
void normalize(const BatchNormShape& s, const T* x, const T* mean, const T* invstd, const T* weight,
               const T* bias, T* y) {
  each(s.batch * s.channels * s.spatial, [=] __device__(int64_t i) {
    const int64_t c = i / s.spatial % s.channels;
    y[i] = (x[i] - mean[c]) * (invstd[c] * (weight ? weight[c] : T(1))) + (bias ? bias[c] : T(0));
  });
}
template <class T>
void batch_norm_training(const BatchNormShape& s, const T* x, const T* weight, const T* bias,
                         T* mean, T* var, T* invstd, T* y) {
  if (s.channels == 0) return;
  const dim3 block = channel_block(s.spatial);
  launch(batch_moments<T>, channel_blocks(s.channels, block), block, 0, s, x, mean, var, invstd);
  normalize(s, x, mean, invstd, weight, bias, y);
}
template <class T>
void batch_norm(const BatchNormShape& s, const T* x, const T* mean, const T* var, const T* weight,
                const T* bias, T* invstd, T* y) {
  const double eps = s.eps;
  each(s.channels, [=] __device__(int64_t c) {
    invstd[c] = static_cast<T>(1 / ::sqrt(static_cast<double>(var[c]) + eps));
  });
  normalize(s, x, mean, invstd, weight, bias, y);
}
template <class T>
void update_running(int64_t channels, double momentum, double factor, const T* value, T* running) {
  each(channels, [=] __device__(int64_t c) {
    const T v = static_cast<T>(value[c] * factor);
    running[c] = static_cast<T>((1 - momentum) * running[c] + momentum * v);
  });
}

template <class T>
__global__ void batch_gradient_sums(const __grid_constant__ BatchNormShape s, const T* g,
                                    const T* x, const T* mean, const T* invstd, T* gw, T* gb,
                                    double* sums) {
  const ChannelPlace place = channel_place();
  const bool inside = place.channel < s.channels;
  double sum_g = 0, sum_gx = 0;
  for (int64_t i = place.thread; inside && i < s.batch * s.spatial; i += place.threads) {
    const int64_t at = place_in_batch(s, place.channel, i);
    sum_g += g[at];
    sum_gx += static_cast<double>(g[at]) * (x[at] - mean[place.channel]);
  }
  sum_g = channel_sum(sum_g);
  sum_gx = channel_sum(sum_gx);
  if (!inside || place.thread != 0) return;
  if (gw) gw[place.channel] = static_cast<T>(sum_gx * invstd[place.channel]);
  if (gb) gb[place.channel] = static_cast<T>(sum_g);
  sums[2 * place.channel] = sum_g;
  sums[2 * place.channel + 1] = sum_gx;
}
template <class T>
void batch_norm_backward(const BatchNormShape& s, bool training, const T* g, const T* x,
                         const T* mean, const T* invstd, const T* weight, T* gx, T* gw, T* gb) {
  if (s.channels == 0) return;
  const Workspace memory(2 * static_cast<size_t>(s.channels) * sizeof(double));
  double* sums = memory.as<double>();
  const dim3 block = channel_block(s.spatial);
  launch(batch_gradient_sums<T>, channel_blocks(s.channels, block), block, 0, s, g, x, mean, invstd,
         gw, gb, sums);
  if (!gx) return;
  const double count = static_cast<double>(s.batch * s.spatial);
  each(s.batch * s.channels * s.spatial, [=] __device__(int64_t i) {
    const int64_t c = i / s.spatial % s.channels;
    const double inverse = invstd[c], scale = inverse * (weight ? weight[c] : T(1));
    const auto a = static_cast<T>(training ? scale * sums[2 * c] / count : 0),
               b = static_cast<T>(training ? scale * inverse * inverse * sums[2 * c + 1] / count
                                           : 0);
    gx[i] = static_cast<T>(scale) * g[i] - a - (x[i] - mean[c]) * b;
  });
}

template <class T>
const NormKernels<T> table{row_norm<T>,       row_norm_backward<T>, batch_norm_training<T>,
                           update_running<T>, batch_norm<T>,        batch_norm_backward<T>};

}  // namespace

void add_norm_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
