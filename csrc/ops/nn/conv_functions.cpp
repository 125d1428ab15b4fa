// conv1d to conv3d and the transposed ones: their checks and defaults, on top of the ops in
// conv.cpp.
#include <algorithm>
#include <string>

#include "base/checked.h"
#include "ops/core/tensor_ops.h"
#include "ops/nn/conv.h"

namespace taeda {
namespace {

std::string by(DimsRef d) {
  std::string s;
  for (size_t i = 0; i < d.size(); ++i) s += (i ? " x " : "") + std::to_string(d[i]);
  return s;
}

// Adds a batch dimension to an unbatched input; `was_single` tells whether it did.
Tensor batched(const char* what, const Tensor& x, int64_t n, bool* was_single) {
  check(x.dim() == n + 1 || x.dim() == n + 2, "Expected ", n + 1, "D (unbatched) or ", n + 2,
        "D (batched) input to ", what, ", but got input of size: ", to_string(x.sizes()));
  *was_single = x.dim() == n + 1;
  return *was_single ? unsqueeze(x, 0) : x;
}

void check_bias(const Tensor& w, const Tensor& bias, int64_t channels) {
  if (!bias.defined()) return;
  check(bias.dim() == 1 && bias.size(0) == channels, "Given weight of size ", to_string(w.sizes()),
        ", expected bias to be 1-dimensional with ", channels, " elements, but got bias of size ",
        to_string(bias.sizes()), " instead");
}

void check_weight(const char* what, int64_t n, const Tensor& w) {
  check(w.dim() == n + 2, what, "(): expected ", n + 2,
        "-dimensional weight, but got weight of size ", to_string(w.sizes()));
}

Tensor conv(const char* what, int64_t n, const Tensor& input, const Tensor& w, const Tensor& bias,
            const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  check_conv_window(what, stride, padding, dilation, groups);
  bool single;
  Tensor x = batched(what, input, n, &single);
  check_weight(what, n, w);
  check(w.size(0) >= groups && w.size(0) % groups == 0, "Given groups=", groups,
        ", expected weight to be at least ", groups,
        " and divisible by it at dimension 0, but got weight of size ", to_string(w.sizes()),
        " instead");
  const int64_t channels = checked_mul(w.size(1), groups);
  check(x.size(1) == channels, "Given groups=", groups, ", weight of size ", to_string(w.sizes()),
        ", expected input", to_string(x.sizes()), " to have ", channels, " channels, but got ",
        x.size(1), " channels instead");
  check_bias(w, bias, w.size(0));
  check_conv_types(what, x, w, bias);
  Dims padded, kernel_size;
  bool fits = true;
  for (int64_t d = 0; d < n; ++d) {
    auto i = static_cast<size_t>(d);
    padded.push_back(checked_add(x.size(d + 2), checked_mul(2, padding[i])));
    kernel_size.push_back(checked_reach(w.size(d + 2), dilation[i]));
    fits &= padded[i] >= kernel_size[i] && w.size(d + 2) > 0;
  }
  check(fits, "Calculated padded input size per channel: (", by(padded), "). Kernel size: (",
        by(kernel_size), "). Kernel size can't be greater than actual input size");
  Tensor y = op<"_conv">(x, w, bias, stride, padding, dilation, groups);
  return single ? squeeze(y, 0) : y;
}

template <int N> constexpr const char* conv_name() {
  return N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
}

template <int N>
Tensor conv_nd(const Tensor& input, const Tensor& w, const Tensor& bias, const Dims& stride,
               const Dims& padding, const Dims& dilation, int64_t groups) {
  return conv(conv_name<N>(), N, input, w, bias, stride, padding, dilation, groups);
}

template <int N>
Tensor conv_nd_named(const Tensor& input, const Tensor& w, const Tensor& bias, const Dims& stride,
                     const std::string& padding, const Dims& dilation, int64_t groups) {
  check(padding == "same" || padding == "valid", "Invalid padding string: '", padding,
        "'; use 'same' or 'valid'");
  check_weight(conv_name<N>(), N, w);
  Dims both(N);
  if (padding == "valid") return conv_nd<N>(input, w, bias, stride, both, dilation, groups);
  Dims extra;  // last dimension first, as pad takes it
  bool uneven = false;
  for (int d = 0; d < N; ++d) {
    check(stride[static_cast<size_t>(d)] == 1,
          "padding='same' is not supported for strided convolutions");
    int64_t total = checked_reach(w.size(d + 2), dilation[static_cast<size_t>(d)]) - 1;
    both[static_cast<size_t>(d)] = total / 2;
    extra.insert(0, total % 2);
    extra.insert(0, 0);
    uneven |= total % 2;
  }
  Tensor x = uneven ? op<"constant_pad_nd">(input, extra, Scalar(0)) : input;
  return conv_nd<N>(x, w, bias, stride, both, dilation, groups);
}

template <int N>
Tensor conv_transpose(const Tensor& input, const Tensor& w, const Tensor& bias, const Dims& stride,
                      const Dims& padding, const Dims& output_padding, int64_t groups,
                      const Dims& dilation) {
  static constexpr const char* names[] = {"conv_transpose1d", "conv_transpose2d",
                                          "conv_transpose3d"};
  const char* what = names[N - 1];
  check_conv_window(what, stride, padding, dilation, groups);
  bool single;
  Tensor x = batched(what, input, N, &single);
  check(w.dim() == N + 2, what, "(): expected ", N + 2,
        "-dimensional weight, but got weight of size ", to_string(w.sizes()));
  check(w.size(0) == x.size(1) && w.size(0) % groups == 0, "Given transposed=1, weight of size ",
        to_string(w.sizes()), ", expected input", to_string(x.sizes()), " to have ", w.size(0),
        " channels, but got ", x.size(1), " channels instead (groups=", groups, ")");
  check_bias(w, bias, checked_mul(w.size(1), groups));
  check_conv_types(what, x, w, bias);
  Dims out;
  for (int64_t d = 0; d < N; ++d) {
    auto i = static_cast<size_t>(d);
    check(output_padding[i] >= 0 && output_padding[i] < std::max(stride[i], dilation[i]),
          "output padding must be smaller than either stride or dilation, but got output_padding=",
          to_string(output_padding), ", stride=", to_string(stride),
          ", dilation=", to_string(dilation));
    const int64_t whole = checked_add(checked_reach(x.size(d + 2), stride[i]),
                                      checked_reach(w.size(d + 2), dilation[i]) - 1);
    out.push_back(checked_add(checked_add(whole, output_padding[i]), checked_mul(-2, padding[i])));
    check(out.back() >= 0, what, "(): the output would have a negative size: ", to_string(out));
  }
  Tensor y = op<"_conv_input">(x, w, out, stride, padding, dilation, groups);
  if (bias.defined()) {
    Dims channel(static_cast<size_t>(N + 2), 1);
    channel[1] = bias.size(0);
    y = y + reshape(bias, channel);
  }
  return single ? squeeze(y, 0) : y;
}

constexpr Traits kConvComposite{.forms = kFunction, .composite = true};

const Define conv_function_ops[] = {
    {"conv1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, padding: "
     "int[1] = 0, dilation: "
     "int[1] = 1, groups: int = 1) -> Tensor",
     "Convolution (cross-correlation: the kernel is not flipped) of (N, C, L) or (C, L) with a "
     "weight (out, C / groups, k) and a bias (out,).\n\n"
     "`stride` is the step of the kernel, `padding` the number of zeros at each end, `dilation` "
     "the distance between the kernel's elements. The channels of input and output are divided "
     "into `groups`, each convolved on its own.",
     kernel(conv_nd<1>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, padding: "
     "int[2] = 0, dilation: "
     "int[2] = 1, groups: int = 1) -> Tensor",
     "Convolution of (N, C, H, W) or (C, H, W) with a weight (out, C / groups, kH, kW); "
     "see `conv1d`. Stride, padding and dilation are one number, or one for each dimension.",
     kernel(conv_nd<2>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, padding: "
     "int[3] = 0, dilation: "
     "int[3] = 1, groups: int = 1) -> Tensor",
     "Convolution of (N, C, D, H, W) or (C, D, H, W) with a weight (out, C / groups, kD, kH, kW); "
     "see `conv1d`. Stride, padding and dilation are one number, or one for each dimension.",
     kernel(conv_nd<3>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, padding: str "
     "= 'valid', dilation: "
     "int[1] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<1>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, padding: str "
     "= 'valid', dilation: "
     "int[2] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<2>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, padding: str "
     "= 'valid', dilation: "
     "int[3] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<3>), kConvComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, "
     "padding: int[1] = 0, "
     "output_padding: int[1] = 0, groups: int = 1, dilation: int[1] = 1) -> Tensor",
     "Transposed convolution of (N, C, L) or (C, L) with a weight (C, out / groups, k): the "
     "gradient of a convolution with respect to its input.\n\n"
     "`stride` is the distance between the output positions of adjacent inputs; `padding` is cut "
     "off both ends; `output_padding`, less than the stride or the dilation, is added at one end.",
     kernel(conv_transpose<1>),
     kConvComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
    {"conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, "
     "padding: int[2] = 0, "
     "output_padding: int[2] = 0, groups: int = 1, dilation: int[2] = 1) -> Tensor",
     "Transposed convolution of (N, C, H, W) with a weight (C, out / groups, kH, kW); "
     "see `conv_transpose1d`.",
     kernel(conv_transpose<2>),
     kConvComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
    {"conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, "
     "padding: int[3] = 0, "
     "output_padding: int[3] = 0, groups: int = 1, dilation: int[3] = 1) -> Tensor",
     "Transposed convolution of (N, C, D, H, W) with a weight (C, out / groups, kD, kH, kW); "
     "see `conv_transpose1d`.",
     kernel(conv_transpose<3>),
     kConvComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
};

}  // namespace
}  // namespace taeda
