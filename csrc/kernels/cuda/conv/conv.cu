// Convolutions and their gradients by cuDNN; where that is absent or cannot, by kernels of our own.
#include "kernels/conv.h"

#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/conv/implicit_gemm.h"
#include "kernels/cuda/tables.h"

namespace taeda::cuda {
namespace {

template <class T, int Width> struct alignas(Width * sizeof(T)) Neighbours {
  T v[Width];
};
// y += bias, Width elements at once: places of one channel, or neighbouring channels.
template <int Width, class T> void add_bias(const ConvShape& s, T* y, const T* bias) {
  using S = ConvSum<T>;
  const int64_t places = volume(s.out), n = s.batch * s.out_channels * places;
  const int step = s.channels_last ? 1 : 0, channels_at_once = s.channels_last ? Width : 1;
  const Divisor across(s.channels_last ? 1 : places / Width),
      among(s.out_channels / channels_at_once);
  auto* to = reinterpret_cast<Neighbours<T, Width>*>(y);
  each(n / Width, [=] __device__(int64_t i) {
    int64_t channel = i;
    across.divide(channel);
    channel = among.divide(channel) * channels_at_once;
    Neighbours<T, Width> all = to[i];
    for (int j = 0; j < Width; ++j)
      all.v[j] = convert<T>(convert<S>(all.v[j]) + convert<S>(bias[channel + j * step]));
    to[i] = all;
  });
}

template <class T> struct Conv {
  static void forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
    if (!convolve_by_cudnn({ConvPass::forward, dtype_of<T>, s, x, w, y}))
      return convolve_by_gemm(ConvPass::forward, s, w, x, y, bias);
    if (!bias) return;
    constexpr int width = 16 / sizeof(T);
    const int64_t together = s.channels_last ? s.out_channels : volume(s.out);
    if (together % width == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0)
      add_bias<width>(s, y, bias);
    else add_bias<1>(s, y, bias);
  }
  static void grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
    if (!convolve_by_cudnn({ConvPass::grad_input, dtype_of<T>, s, gx, w, gy}))
      convolve_by_gemm(ConvPass::grad_input, s, w, gy, gx);
  }
  static void grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
    if (!convolve_by_cudnn({ConvPass::grad_weight, dtype_of<T>, s, x, gw, gy}))
      convolve_by_gemm(ConvPass::grad_weight, s, gy, x, gw);
  }
};

template <class T> void integer_forward(const ConvShape& s, const T* x, const T* w, T* y) {
  convolve_by_gemm(ConvPass::forward, s, w, x, y);
}
template <class T> void integer_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  convolve_by_gemm(ConvPass::grad_input, s, w, gy, gx);
}

bool takes_channels_last(ConvPass, const ConvShape&) { return true; }

template <class T>
const ConvKernels<T> table{Conv<T>::forward, Conv<T>::grad_input, Conv<T>::grad_weight,
                           takes_channels_last, true};
template <class T>
const IntegerConvKernels<T> integer_table{integer_forward<T>, integer_grad_input<T>};

template <class... T> void add_floating(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(table<T>)), ...);
}
template <class... T> void add_integer(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(integer_table<T>)), ...);
}

}  // namespace

void add_conv_tables(std::vector<DeviceTable>& to) {
  add_floating<float, double, Half, BFloat16>(to);
  add_integer<uint8_t, int8_t, int16_t, int32_t, int64_t>(to);
}

}  // namespace taeda::cuda
