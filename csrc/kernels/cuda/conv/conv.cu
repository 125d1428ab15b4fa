// Convolutions and their gradients by cuDNN; where that is absent or cannot, each element of the
// result by itself: right for every shape, and not fast.
#include "kernels/conv.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/tables.h"

namespace taeda::cuda {
namespace {

struct Place {
  int64_t at[3];
};
// Coordinates of a flat index within `sizes`.
__device__ Place place_of(int64_t i, const int64_t* sizes) {
  Place p;
  p.at[2] = i % sizes[2];
  p.at[1] = i / sizes[2] % sizes[1];
  p.at[0] = i / sizes[2] / sizes[1];
  return p;
}
__host__ __device__ int64_t volume(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// Where the tap of the window at `out` reads, or -1 outside.
__device__ int64_t input_of(const ConvShape& s, const Place& out, const Place& tap) {
  int64_t flat = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t i = out.at[d] * s.stride[d] - s.padding[d] + tap.at[d] * s.dilation[d];
    if (i < 0 || i >= s.in[d]) return -1;
    flat = flat * s.in[d] + i;
  }
  return flat;
}
// The window whose tap reads `in`, or -1 if there is none.
__device__ int64_t output_of(const ConvShape& s, const Place& in, const Place& tap) {
  int64_t flat = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t far = in.at[d] + s.padding[d] - tap.at[d] * s.dilation[d];
    if (far < 0 || far % s.stride[d] != 0 || far / s.stride[d] >= s.out[d]) return -1;
    flat = flat * s.out[d] + far / s.stride[d];
  }
  return flat;
}

// What products of T are summed in.
template <class T>
using Sum =
    std::conditional_t<is_half_type<T>, float, std::conditional_t<is_float<T>, T, uint64_t>>;

template <class T>
void forward_with(const ConvShape& given, const T* x, const T* w, const T* bias, T* y) {
  const ConvShape s = given;
  const int64_t out = volume(s.out), in = volume(s.in), taps = volume(s.kernel);
  const int64_t channels = s.in_channels / s.groups, per_group = s.out_channels / s.groups;
  each(s.batch * s.out_channels * out, [=] __device__(int64_t i) {
    const int64_t c = i / out % s.out_channels, b = i / out / s.out_channels;
    const Place o = place_of(i % out, s.out);
    const T* from = x + (b * s.in_channels + c / per_group * channels) * in;
    Sum<T> sum = bias ? static_cast<Sum<T>>(bias[c]) : Sum<T>(0);
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t at = input_of(s, o, place_of(t, s.kernel));
      if (at < 0) continue;
      for (int64_t k = 0; k < channels; ++k)
        sum += static_cast<Sum<T>>(from[k * in + at]) *
               static_cast<Sum<T>>(w[(c * channels + k) * taps + t]);
    }
    y[i] = static_cast<T>(sum);
  });
}

template <class T> void grad_input(const ConvShape& given, const T* gy, const T* w, T* gx) {
  const ConvShape s = given;
  const int64_t out = volume(s.out), in = volume(s.in), taps = volume(s.kernel);
  const int64_t channels = s.in_channels / s.groups, per_group = s.out_channels / s.groups;
  each(s.batch * s.in_channels * in, [=] __device__(int64_t i) {
    const int64_t c = i / in % s.in_channels, b = i / in / s.in_channels;
    const int64_t first = c / channels * per_group;
    const Place p = place_of(i % in, s.in);
    const T* from = gy + (b * s.out_channels + first) * out;
    Sum<T> sum = 0;
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t at = output_of(s, p, place_of(t, s.kernel));
      if (at < 0) continue;
      for (int64_t k = 0; k < per_group; ++k)
        sum += static_cast<Sum<T>>(from[k * out + at]) *
               static_cast<Sum<T>>(w[((first + k) * channels + c % channels) * taps + t]);
    }
    gx[i] = static_cast<T>(sum);
  });
}

// A group of threads for each weight.
template <class T>
__global__ void weight_gradients(const __grid_constant__ ConvShape s, const T* x, const T* gy,
                                 T* gw) {
  const int64_t out = volume(s.out), in = volume(s.in), taps = volume(s.kernel);
  const int64_t channels = s.in_channels / s.groups, per_group = s.out_channels / s.groups;
  const int64_t i = group_index();
  const bool inside = i < s.out_channels * channels * taps;
  const int64_t c = i / taps / channels, k = i / taps % channels;
  const Place tap = place_of(i % taps, s.kernel);
  double sum = 0;
  for (int64_t j = threadIdx.x; inside && j < s.batch * out; j += blockDim.x) {
    const int64_t b = j / out, at = input_of(s, place_of(j % out, s.out), tap);
    if (at < 0) continue;
    sum += static_cast<double>(gy[(b * s.out_channels + c) * out + j % out]) *
           x[(b * s.in_channels + c / per_group * channels + k) * in + at];
  }
  sum = group_sum(sum);
  if (inside && threadIdx.x == 0) gw[i] = static_cast<T>(sum);
}
template <class T> void grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const int64_t weights = s.out_channels * (s.in_channels / s.groups) * volume(s.kernel);
  if (weights == 0) return;
  const dim3 block = groups_for(s.batch * volume(s.out));
  launch(weight_gradients<T>, blocks_of(weights, block), block, 0, s, x, gy, gw);
}

template <class T> void integer_forward(const ConvShape& s, const T* x, const T* w, T* y) {
  forward_with(s, x, w, static_cast<const T*>(nullptr), y);
}

template <class T, int Width> struct alignas(Width * sizeof(T)) Neighbours {
  T v[Width];
};
// y (batch, channels, positions) += bias (channels), Width positions at once.
template <int Width, class T>
void add_bias(T* y, const T* bias, int64_t channels, int64_t positions, int64_t n) {
  using S = Sum<T>;
  const Divisor across(positions / Width), among(channels);
  auto* to = reinterpret_cast<Neighbours<T, Width>*>(y);
  each(n / Width, [=] __device__(int64_t i) {
    int64_t channel = i;
    across.divide(channel);
    const S more = convert<S>(bias[among.divide(channel)]);
    Neighbours<T, Width> all = to[i];
    for (T& v : all.v) v = convert<T>(convert<S>(v) + more);
    to[i] = all;
  });
}

template <class T> struct Conv {
  static void forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
    if (!convolve_by_cudnn({ConvPass::Forward, dtype_of<T>, s, x, w, y}))
      return forward_with(s, x, w, bias, y);
    if (!bias) return;
    const int64_t positions = volume(s.out), n = s.batch * s.out_channels * positions;
    constexpr int width = 16 / sizeof(T);
    if (positions % width == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0)
      add_bias<width>(y, bias, s.out_channels, positions, n);
    else add_bias<1>(y, bias, s.out_channels, positions, n);
  }
  static void grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
    if (!convolve_by_cudnn({ConvPass::GradInput, dtype_of<T>, s, gx, w, gy}))
      cuda::grad_input(s, gy, w, gx);
  }
  static void grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
    if (!convolve_by_cudnn({ConvPass::GradWeight, dtype_of<T>, s, x, gw, gy}))
      cuda::grad_weight(s, x, gy, gw);
  }
};

template <class T>
const ConvKernels<T> table{Conv<T>::forward, Conv<T>::grad_input, Conv<T>::grad_weight};
template <class T> const IntegerConvKernels<T> integer_table{integer_forward<T>, grad_input<T>};

template <class... T> void add_integer(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(integer_table<T>)), ...);
}

}  // namespace

void add_conv_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
  add_integer<uint8_t, int8_t, int16_t, int32_t, int64_t>(to);
}

}  // namespace taeda::cuda
