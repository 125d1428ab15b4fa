// Convolutions. Three bilinear ops, each the derivative of the others: forward F(x, w), the
// gradient with respect to the input I(g, w) and to the weight W(x, g). A transposed convolution is
// I.
#include "kernels/conv.h"

#include <algorithm>
#include <limits>

#include "autograd/backward.h"
#include "base/checked.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"

namespace taeda {
namespace {

struct Window {
  const Dims &stride, &padding, &dilation;
  int64_t groups;
};

ConvShape make_shape(DimsRef x, DimsRef w, DimsRef y, const Window& p) {
  ConvShape s;
  s.batch = x[0];
  s.groups = p.groups;
  s.in_channels = x[1];
  s.out_channels = w[0];
  for (size_t i = 0, d = 5 - x.size(); d < 3; ++i, ++d) {
    s.in[d] = x[i + 2];
    s.kernel[d] = w[i + 2];
    s.out[d] = y[i + 2];
    // A longer stride would leave the input after the first step anyway.
    s.stride[d] = std::min(p.stride[i], std::max<int64_t>(1, s.in[d] + 2 * p.padding[i]));
    s.padding[d] = p.padding[i];
    s.dilation[d] = p.dilation[i];
  }
  return s;
}

void check_types(const char* what, const Tensor& x, const Tensor& w, const Tensor& bias) {
  check(x.dtype() == w.dtype(), what, "(): Input type (", name(x.dtype()), ") and weight type (",
        name(w.dtype()), ") should be the same");
  check(!bias.defined() || bias.dtype() == x.dtype(), what, "(): Input type (", name(x.dtype()),
        ") and bias type (", bias.defined() ? name(bias.dtype()) : "", ") should be the same");
  check(x.device() == w.device(), what, "(): input is on ", x.device(), " but weight is on ",
        w.device());
}

std::string by(DimsRef d) {
  std::string s;
  for (size_t i = 0; i < d.size(); ++i) s += (i ? " x " : "") + std::to_string(d[i]);
  return s;
}

void check_window(const char* what, const Dims& stride, const Dims& padding, const Dims& dilation,
                  int64_t groups) {
  for (int64_t v : stride)
    check(v > 0, what, "(): non-positive stride is not supported, got ", to_string(stride));
  for (int64_t v : padding)
    check(v >= 0 && v <= std::numeric_limits<int32_t>::max(), what,
          "(): ", v < 0 ? "negative padding" : "padding of more than 2147483647",
          " is not supported, got ", to_string(padding));
  for (int64_t v : dilation)
    check(v > 0, what, "(): dilation should be greater than zero, got ", to_string(dilation));
  check(groups > 0, what, "(): non-positive groups is not supported, got ", groups);
}

// Preconditions of the kernels on their two operands, each (N or O, C, *spatial), and on the
// window.
void check_operands(const Tensor& a, const Tensor& b, const Dims& stride, const Dims& padding,
                    const Dims& dilation, int64_t groups) {
  check_window("convolution", stride, padding, dilation, groups);
  check(a.dim() >= 3 && a.dim() <= 5 && a.dim() == b.dim(),
        "convolution(): expected two operands of 3, 4 or 5 "
        "dimensions, but got sizes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  auto n = static_cast<size_t>(a.dim()) - 2;
  check(stride.size() == n && padding.size() == n && dilation.size() == n,
        "convolution(): expected stride, padding and "
        "dilation of ",
        n, " ints each");
  check_types("convolution", a, b, {});
}

// ---- the three ops ----

bool is_integer(const Tensor& t) { return is_integral(t.dtype(), false); }

template <class F> void visit_integers(DType d, F&& f) {
  visit_real(d, "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

// The real (0) or imaginary (1) part of a complex tensor, as a view that is not recorded.
Tensor part(const Tensor& z, int which) {
  Dims strides(z.strides());
  for (int64_t& s : strides) s *= 2;
  return from_storage(z.storage(), z.sizes(), strides, z.offset() * 2 + which, to_real(z.dtype()));
}

// A complex convolution from four real ones.
template <class F> Tensor by_real_parts(const Tensor& a, const Tensor& b, F&& real_product) {
  Tensor a0 = part(a, 0), a1 = part(a, 1), b0 = part(b, 0), b1 = part(b, 1);
  Tensor both[2][2] = {{real_product(a0, b0), real_product(a1, b1)},
                       {real_product(a0, b1), real_product(a1, b0)}};
  Tensor out = empty(both[0][0].sizes(), a.options());
  GradMode off(false);
  for (int k = 0; k < 2; ++k) {
    const Tensor &x = both[k][0], &y = both[k][1];
    copy_into(part(out, k), k == 0 ? x - y : x + y);
  }
  return out;
}

// y (N, C, *) += bias (C).
void add_bias(const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return;
  Dims channel(static_cast<size_t>(y.dim()), 1);
  channel[1] = bias.size(0);
  copy_into(y, y + reshape(bias, channel));
}

Tensor forward(const Tensor& x_in, const Tensor& w_in, const Tensor& bias_in, const Dims& stride,
               const Dims& padding, const Dims& dilation, int64_t groups) {
  check_operands(x_in, w_in, stride, padding, dilation, groups);
  check(x_in.size(1) == checked_mul(w_in.size(1), groups) && w_in.size(0) % groups == 0,
        "convolution(): input of size ", to_string(x_in.sizes()), " does not fit weight of size ",
        to_string(w_in.sizes()), " with groups=", groups);
  check(!bias_in.defined() || bias_in.numel() == w_in.size(0),
        "convolution(): expected bias to have ", w_in.size(0), " elements");
  if (is_complex(x_in.dtype()) && !x_in.is_meta()) {
    Tensor y = by_real_parts(x_in, w_in, [&](const Tensor& x, const Tensor& w) {
      return forward(x, w, {}, stride, padding, dilation, groups);
    });
    add_bias(y, bias_in);
    return y;
  }
  DType compute = is_integer(x_in) || is_complex(x_in.dtype())
                      ? x_in.dtype()
                      : compute_dtype(x_in.dtype(), "convolution");
  Dims out{x_in.size(0), w_in.size(0)};
  for (int64_t d = 0; d + 2 < x_in.dim(); ++d) {
    auto i = static_cast<size_t>(d);
    const int64_t padded = checked_add(x_in.size(d + 2), checked_mul(2, padding[i])),
                  reach = checked_reach(w_in.size(d + 2), dilation[i]);
    out.push_back((padded - reach) / stride[i] + 1);
  }
  Tensor y = empty(out, {compute, x_in.device()});
  if (y.is_meta() || y.numel() == 0) return finished(y, x_in.dtype());
  Tensor x = prepared(x_in, compute), w = prepared(w_in, compute), b = prepared(bias_in, compute);
  auto s = make_shape(x.sizes(), w.sizes(), out, {stride, padding, dilation, groups});
  if (is_integer(x_in)) {
    visit_integers(compute, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<IntegerConvKernels<T>>(x.device())
          .forward(s, x.data_as<T>(), w.data_as<T>(), y.data_as<T>());
    });
    add_bias(y, bias_in);
    return y;
  }
  visit_floating(compute, "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<ConvKernels<T>>(x.device())
        .forward(s, x.data_as<T>(), w.data_as<T>(), memory<T>(b), y.data_as<T>());
  });
  return finished(y, x_in.dtype());
}

Tensor input_gradient(const Tensor& grad, const Tensor& w_in, const Dims& in, const Dims& stride,
                      const Dims& padding, const Dims& dilation, int64_t groups) {
  check_operands(grad, w_in, stride, padding, dilation, groups);
  check(grad.size(1) == w_in.size(0) && w_in.size(0) % groups == 0 && in.size() == stride.size(),
        "convolution_backward(): grad of size ", to_string(grad.sizes()),
        " does not fit weight of size ", to_string(w_in.sizes()), " with groups=", groups);
  if (is_complex(grad.dtype()) && !grad.is_meta()) {
    return by_real_parts(grad, w_in, [&](const Tensor& g, const Tensor& w) {
      return input_gradient(g, w, in, stride, padding, dilation, groups);
    });
  }
  const bool kept_dtype = is_integer(grad) || is_complex(grad.dtype());
  DType compute = kept_dtype ? grad.dtype() : compute_dtype(grad.dtype(), "convolution");
  Dims sizes{grad.size(0), checked_mul(w_in.size(1), groups)};
  for (int64_t v : in) sizes.push_back(v);
  Tensor gx = grad.numel() ? empty(sizes, {compute, grad.device()})
                           : zeros(sizes, {compute, grad.device()});
  if (gx.is_meta() || gx.numel() == 0 || grad.numel() == 0) return finished(gx, grad.dtype());
  Tensor g = prepared(grad, compute), w = prepared(w_in, compute);
  auto s = make_shape(sizes, w.sizes(), g.sizes(), {stride, padding, dilation, groups});
  if (is_integer(grad)) {
    visit_integers(compute, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<IntegerConvKernels<T>>(g.device())
          .grad_input(s, g.data_as<T>(), w.data_as<T>(), gx.data_as<T>());
    });
    return gx;
  }
  visit_floating(compute, "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<ConvKernels<T>>(g.device())
        .grad_input(s, g.data_as<T>(), w.data_as<T>(), gx.data_as<T>());
  });
  return finished(gx, grad.dtype());
}

Tensor weight_gradient(const Tensor& x_in, const Tensor& grad, const Dims& kernel_size,
                       const Dims& stride, const Dims& padding, const Dims& dilation,
                       int64_t groups) {
  check_operands(x_in, grad, stride, padding, dilation, groups);
  check(x_in.size(0) == grad.size(0) && x_in.size(1) % groups == 0 && grad.size(1) % groups == 0 &&
            kernel_size.size() == stride.size(),
        "convolution_backward(): grad of size ", to_string(grad.sizes()),
        " does not fit input of size ", to_string(x_in.sizes()), " with groups=", groups);
  if (is_complex(grad.dtype()) && !grad.is_meta()) {
    return by_real_parts(x_in, grad, [&](const Tensor& x, const Tensor& g) {
      return weight_gradient(x, g, kernel_size, stride, padding, dilation, groups);
    });
  }
  DType compute =
      is_complex(grad.dtype()) ? grad.dtype() : compute_dtype(grad.dtype(), "convolution");
  Dims sizes{grad.size(1), x_in.size(1) / groups};
  for (int64_t v : kernel_size) sizes.push_back(v);
  bool nothing = grad.numel() == 0 || x_in.numel() == 0;
  Tensor gw =
      nothing ? zeros(sizes, {compute, grad.device()}) : empty(sizes, {compute, grad.device()});
  if (gw.is_meta() || gw.numel() == 0 || nothing) return finished(gw, grad.dtype());
  Tensor x = prepared(x_in, compute), g = prepared(grad, compute);
  auto s = make_shape(x.sizes(), sizes, g.sizes(), {stride, padding, dilation, groups});
  visit_floating(compute, "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<ConvKernels<T>>(g.device())
        .grad_weight(s, x.data_as<T>(), g.data_as<T>(), gw.data_as<T>());
  });
  return finished(gw, grad.dtype());
}

Dims spatial(DimsRef sizes) { return Dims(sizes.subspan(2)); }

Tensor channel_sum(const Tensor& g) {
  Dims dims{0};
  for (int64_t d = 2; d < g.dim(); ++d) dims.push_back(d);
  return sum(g, dims);
}

// The conjugate of operand i, which is saved only if the other operand's gradient is needed.
Tensor kept(Backward& b, int i) { return b.saved(i) ? conj(b.arg<Tensor>(i)) : Tensor(); }

// With output_padding, `t` may have one more element at the end than expected.
Tensor fitted(Tensor t, const Dims& sizes) {
  for (int64_t d = 2; d < t.dim(); ++d) {
    const int64_t n = sizes[static_cast<size_t>(d)];
    if (t.size(d) != n) t = narrow(t, d, 0, n);
  }
  return t;
}

void forward_backward(Backward& b) {
  Tensor g = b.grad(), x = kept(b, 0), w = kept(b, 1);
  Dims stride = b.arg<Dims>(3), padding = b.arg<Dims>(4), dilation = b.arg<Dims>(5);
  int64_t groups = b.arg<int64_t>(6);
  if (b.needs(0))
    b.set(0, op<"_conv_input">(g, w, spatial(b.sizes(0)), stride, padding, dilation, groups));
  if (b.needs(1))
    b.set(1, op<"_conv_weight">(x, g, spatial(b.sizes(1)), stride, padding, dilation, groups));
  if (b.has(2) && b.needs(2)) b.set(2, channel_sum(g));
}
void input_backward(Backward& b) {  // of I(g, w), with h like x
  Tensor h = b.grad(), g = kept(b, 0), w = kept(b, 1);
  Dims stride = b.arg<Dims>(3), padding = b.arg<Dims>(4), dilation = b.arg<Dims>(5);
  int64_t groups = b.arg<int64_t>(6);
  if (b.needs(0))
    b.set(0, fitted(op<"_conv">(h, w, kNoTensor, stride, padding, dilation, groups), b.sizes(0)));
  if (b.needs(1))
    b.set(1, op<"_conv_weight">(h, g, spatial(b.sizes(1)), stride, padding, dilation, groups));
}
void weight_backward(Backward& b) {  // of W(x, g), with v like w
  Tensor v = b.grad(), x = kept(b, 0), g = kept(b, 1);
  Dims stride = b.arg<Dims>(3), padding = b.arg<Dims>(4), dilation = b.arg<Dims>(5);
  int64_t groups = b.arg<int64_t>(6);
  if (b.needs(0))
    b.set(0, op<"_conv_input">(g, v, spatial(b.sizes(0)), stride, padding, dilation, groups));
  if (b.needs(1))
    b.set(1, fitted(op<"_conv">(x, v, kNoTensor, stride, padding, dilation, groups), b.sizes(1)));
}

// ---- public ops ----

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
  check_window(what, stride, padding, dilation, groups);
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
  check_types(what, x, w, bias);
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
  check_window(what, stride, padding, dilation, groups);
  bool single;
  Tensor x = batched(what, input, N, &single);
  check(w.dim() == N + 2, what, "(): expected ", N + 2,
        "-dimensional weight, but got weight of size ", to_string(w.sizes()));
  check(w.size(0) == x.size(1) && w.size(0) % groups == 0, "Given transposed=1, weight of size ",
        to_string(w.sizes()), ", expected input", to_string(x.sizes()), " to have ", w.size(0),
        " channels, but got ", x.size(1), " channels instead (groups=", groups, ")");
  check_bias(w, bias, checked_mul(w.size(1), groups));
  check_types(what, x, w, bias);
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

constexpr Traits kComposite{.forms = kFunction, .composite = true};
constexpr Traits bilinear(BackwardFn f) {
  return {.backward = f,
          .saves = saves_arg(0) | saves_arg(1),
          .forms = 0,
          .saved_for_others = 0b11,
          .format_of = 0b11};
}

const Define conv_ops[] = {
    {"_conv(input: Tensor, weight: Tensor, bias: Tensor?, stride: int[], padding: int[], dilation: "
     "int[], groups: int) -> "
     "Tensor",
     "Cross-correlation of (N, C, *) with a weight (out, C / groups, *).", kernel(forward),
     bilinear(forward_backward).with(Flops::Convolution)},
    {"_conv_input(grad: Tensor, weight: Tensor, input_size: int[], stride: int[], padding: int[], "
     "dilation: int[], "
     "groups: int) -> Tensor",
     "Gradient of a convolution with respect to its input, of spatial size `input_size`.",
     kernel(input_gradient), bilinear(input_backward).with(Flops::TransposedConvolution)},
    {"_conv_weight(input: Tensor, grad: Tensor, kernel_size: int[], stride: int[], padding: int[], "
     "dilation: int[], "
     "groups: int) -> Tensor",
     "Gradient of a convolution with respect to its weight, of spatial size `kernel_size`.",
     kernel(weight_gradient), bilinear(weight_backward).with(Flops::FilterGradient)},
    {"conv1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, padding: "
     "int[1] = 0, dilation: "
     "int[1] = 1, groups: int = 1) -> Tensor",
     "Convolution (cross-correlation: the kernel is not flipped) of (N, C, L) or (C, L) with a "
     "weight (out, C / groups, k) and a bias (out,).\n\n"
     "`stride` is the step of the kernel, `padding` the number of zeros at each end, `dilation` "
     "the distance between the kernel's elements. The channels of input and output are divided "
     "into `groups`, each convolved on its own.",
     kernel(conv_nd<1>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, padding: "
     "int[2] = 0, dilation: "
     "int[2] = 1, groups: int = 1) -> Tensor",
     "Convolution of (N, C, H, W) or (C, H, W) with a weight (out, C / groups, kH, kW); "
     "see `conv1d`. Stride, padding and dilation are one number, or one for each dimension.",
     kernel(conv_nd<2>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, padding: "
     "int[3] = 0, dilation: "
     "int[3] = 1, groups: int = 1) -> Tensor",
     "Convolution of (N, C, D, H, W) or (C, D, H, W) with a weight (out, C / groups, kD, kH, kW); "
     "see `conv1d`. Stride, padding and dilation are one number, or one for each dimension.",
     kernel(conv_nd<3>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, padding: str "
     "= 'valid', dilation: "
     "int[1] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<1>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, padding: str "
     "= 'valid', dilation: "
     "int[2] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<2>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, padding: str "
     "= 'valid', dilation: "
     "int[3] = 1, groups: int = 1) -> Tensor",
     "With padding 'valid' (none) or 'same' (the output has the input's size; stride 1).",
     kernel(conv_nd_named<3>), kComposite.with(Precision::Lower).with(Flops::Convolution)},
    {"conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[1] = 1, "
     "padding: int[1] = 0, "
     "output_padding: int[1] = 0, groups: int = 1, dilation: int[1] = 1) -> Tensor",
     "Transposed convolution of (N, C, L) or (C, L) with a weight (C, out / groups, k): the "
     "gradient of a convolution with respect to its input.\n\n"
     "`stride` is the distance between the output positions of adjacent inputs; `padding` is cut "
     "off both ends; `output_padding`, less than the stride or the dilation, is added at one end.",
     kernel(conv_transpose<1>),
     kComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
    {"conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[2] = 1, "
     "padding: int[2] = 0, "
     "output_padding: int[2] = 0, groups: int = 1, dilation: int[2] = 1) -> Tensor",
     "Transposed convolution of (N, C, H, W) with a weight (C, out / groups, kH, kW); "
     "see `conv_transpose1d`.",
     kernel(conv_transpose<2>),
     kComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
    {"conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[3] = 1, "
     "padding: int[3] = 0, "
     "output_padding: int[3] = 0, groups: int = 1, dilation: int[3] = 1) -> Tensor",
     "Transposed convolution of (N, C, D, H, W) with a weight (C, out / groups, kD, kH, kW); "
     "see `conv_transpose1d`.",
     kernel(conv_transpose<3>),
     kComposite.with(Precision::Lower).with(Flops::TransposedConvolution)},
};

}  // namespace
}  // namespace taeda
