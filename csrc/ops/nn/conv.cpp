// Convolutions. Three bilinear ops, each the derivative of the others: forward F(x, w), the
// gradient with respect to the input I(g, w) and to the weight W(x, g). A transposed convolution is
// I.
#include "kernels/conv.h"

#include <algorithm>
#include <limits>

#include "autograd/backward.h"
#include "base/checked.h"
#include "ops/core/memory.h"
#include "ops/nn/channels_last.h"
#include "ops/nn/conv.h"

namespace taeda {

void check_conv_types(const char* what, const Tensor& x, const Tensor& w, const Tensor& bias) {
  check(x.dtype() == w.dtype(), what, "(): Input type (", name(x.dtype()), ") and weight type (",
        name(w.dtype()), ") should be the same");
  check(!bias.defined() || bias.dtype() == x.dtype(), what, "(): Input type (", name(x.dtype()),
        ") and bias type (", bias.defined() ? name(bias.dtype()) : "", ") should be the same");
  check(x.device() == w.device(), what, "(): input is on ", x.device(), " but weight is on ",
        w.device());
}

void check_conv_window(const char* what, const Dims& stride, const Dims& padding,
                       const Dims& dilation, int64_t groups) {
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

// Preconditions of the kernels on their two operands, each (N or O, C, *spatial), and on the
// window.
void check_operands(const Tensor& a, const Tensor& b, const Dims& stride, const Dims& padding,
                    const Dims& dilation, int64_t groups) {
  check_conv_window("convolution", stride, padding, dilation, groups);
  check(a.dim() >= 3 && a.dim() <= 5 && a.dim() == b.dim(),
        "convolution(): expected two operands of 3, 4 or 5 "
        "dimensions, but got sizes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  auto n = static_cast<size_t>(a.dim()) - 2;
  check(stride.size() == n && padding.size() == n && dilation.size() == n,
        "convolution(): expected stride, padding and "
        "dilation of ",
        n, " ints each");
  check_conv_types("convolution", a, b, {});
}

Dims spatial(DimsRef sizes) { return Dims(sizes.subspan(2)); }

// The size of a convolution's output in spatial dimension d, of an input of `size`.
int64_t output_size(int64_t size, int64_t kernel, size_t d, const Dims& stride, const Dims& padding,
                    const Dims& dilation) {
  const int64_t padded = checked_add(size, checked_mul(2, padding[d]));
  return (padded - checked_reach(kernel, dilation[d])) / stride[d] + 1;
}

// A gradient must not reach beyond the output; of a transposed convolution with output_padding, it
// may end before it.
void check_gradient(const Tensor& grad, const Dims& in, const Dims& kernel, const Dims& stride,
                    const Dims& padding, const Dims& dilation) {
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t most = output_size(in[d], kernel[d], d, stride, padding, dilation);
    check(grad.sizes()[d + 2] <= std::max<int64_t>(most, 0),
          "convolution_backward(): grad of size ", to_string(grad.sizes()),
          " reaches beyond the output of an input of spatial size ", to_string(in),
          " and a kernel of ", to_string(kernel));
  }
}

// ---- the three ops ----

bool is_integer(const Tensor& t) { return is_integral(t.dtype(), false); }

template <class F> void visit_integers(DType d, F&& f) {
  visit_real(d, "convolution", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

// Halves too, which some devices' kernels take.
template <class F> void visit_computed(DType d, F&& f) {
  switch (d) {
    case DType::Float16: return f(Tag<Half>{});
    case DType::BFloat16: return f(Tag<BFloat16>{});
    default: return visit_floating(d, "convolution", std::forward<F>(f));
  }
}

// How a convolution is computed, and what it takes and gives.
struct Way {
  DType dtype;
  bool channels_last = false, weights_too = false;  // of the kernels; weights may be contiguous

  // Of two operands; their shape is then in the same layout.
  Way(const Tensor& a, const Tensor& b, ConvPass pass, ConvShape& s) : dtype(a.dtype()) {
    const Device device = a.device();
    if (is_integer(a) || is_complex(dtype)) return;
    const DType given = dtype;
    dtype = compute_dtype(dtype, "convolution");
    visit_computed(device.type == DeviceType::CPU ? dtype : given, [&](auto tag) {
      using K = ConvKernels<typename decltype(tag)::type>;
      if (!has_kernels<K>(device) || !kernels<K>(device).forward) return;
      const K& k = kernels<K>(device);
      if (device.type != DeviceType::CPU) dtype = given;
      s.channels_last = k.takes_channels_last && (is_channels_last(a) || is_channels_last(b)) &&
                        k.takes_channels_last(pass, s);
      channels_last = s.channels_last;
      weights_too = channels_last && k.weights_channels_last;
    });
  }
  Tensor empty(DimsRef sizes, Device device) const { return made(sizes, channels_last, device); }
  Tensor empty_weights(DimsRef sizes, Device device) const {
    return made(sizes, weights_too, device);
  }
  // An operand as the kernels take it, without autograd.
  Tensor operand(const Tensor& t) const { return taken(t, channels_last); }
  Tensor weights(const Tensor& t) const { return taken(t, weights_too); }

 private:
  Tensor made(DimsRef sizes, bool last, Device device) const {
    if (!last) return taeda::empty(sizes, {dtype, device});
    return empty_strided(sizes, channels_last_strides(sizes), {dtype, device});
  }
  Tensor taken(const Tensor& t, bool last) const {
    if (!last) return prepared(t, dtype);
    const auto format = t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    if (t.dtype() == dtype && t.is_contiguous(format)) return t;
    Tensor r = made(t.sizes(), true, t.device());
    copy_into(r, t);
    return r;
  }
};

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
  Dims out{x_in.size(0), w_in.size(0)};
  for (size_t d = 0; d < stride.size(); ++d) {
    out.push_back(
        output_size(x_in.sizes()[d + 2], w_in.sizes()[d + 2], d, stride, padding, dilation));
  }
  auto s = make_shape(x_in.sizes(), w_in.sizes(), out, {stride, padding, dilation, groups});
  const Way way(x_in, w_in, ConvPass::forward, s);
  const bool nothing = w_in.numel() == 0;  // no terms to add up
  Tensor y = nothing ? zeros(out, {way.dtype, x_in.device()}) : way.empty(out, x_in.device());
  if (y.is_meta() || y.numel() == 0) return finished(y, x_in.dtype());
  if (nothing) {
    add_bias(y, prepared(bias_in, way.dtype));
    return finished(y, x_in.dtype());
  }
  Tensor x = way.operand(x_in), w = way.weights(w_in), b = prepared(bias_in, way.dtype);
  if (is_integer(x_in)) {
    visit_integers(way.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<IntegerConvKernels<T>>(x.device())
          .forward(s, x.data_as<T>(), w.data_as<T>(), y.data_as<T>());
    });
    add_bias(y, bias_in);
    return y;
  }
  visit_computed(way.dtype, [&](auto tag) {
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
  check_gradient(grad, in, spatial(w_in.sizes()), stride, padding, dilation);
  if (is_complex(grad.dtype()) && !grad.is_meta()) {
    return by_real_parts(grad, w_in, [&](const Tensor& g, const Tensor& w) {
      return input_gradient(g, w, in, stride, padding, dilation, groups);
    });
  }
  Dims sizes{grad.size(0), checked_mul(w_in.size(1), groups)};
  for (int64_t v : in) sizes.push_back(v);
  auto s = make_shape(sizes, w_in.sizes(), grad.sizes(), {stride, padding, dilation, groups});
  const Way way(grad, w_in, ConvPass::grad_input, s);
  const bool nothing = grad.numel() == 0 || w_in.numel() == 0;
  Tensor gx = nothing ? zeros(sizes, {way.dtype, grad.device()}) : way.empty(sizes, grad.device());
  if (gx.is_meta() || gx.numel() == 0 || nothing) return finished(gx, grad.dtype());
  Tensor g = way.operand(grad), w = way.weights(w_in);
  if (is_integer(grad)) {
    visit_integers(way.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<IntegerConvKernels<T>>(g.device())
          .grad_input(s, g.data_as<T>(), w.data_as<T>(), gx.data_as<T>());
    });
    return gx;
  }
  visit_computed(way.dtype, [&](auto tag) {
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
  check_gradient(grad, spatial(x_in.sizes()), kernel_size, stride, padding, dilation);
  if (is_complex(grad.dtype()) && !grad.is_meta()) {
    return by_real_parts(x_in, grad, [&](const Tensor& x, const Tensor& g) {
      return weight_gradient(x, g, kernel_size, stride, padding, dilation, groups);
    });
  }
  Dims sizes{grad.size(1), x_in.size(1) / groups};
  for (int64_t v : kernel_size) sizes.push_back(v);
  auto s = make_shape(x_in.sizes(), sizes, grad.sizes(), {stride, padding, dilation, groups});
  const Way way(x_in, grad, ConvPass::grad_weight, s);
  bool nothing = grad.numel() == 0 || x_in.numel() == 0;
  Tensor gw =
      nothing ? zeros(sizes, {way.dtype, grad.device()}) : way.empty_weights(sizes, grad.device());
  if (gw.is_meta() || gw.numel() == 0 || nothing) return finished(gw, grad.dtype());
  Tensor x = way.operand(x_in), g = way.operand(grad);
  visit_computed(way.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<ConvKernels<T>>(g.device())
        .grad_weight(s, x.data_as<T>(), g.data_as<T>(), gw.data_as<T>());
  });
  return finished(gw, grad.dtype());
}

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
};

}  // namespace
}  // namespace taeda
