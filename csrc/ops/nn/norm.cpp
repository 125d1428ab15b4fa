// Layer, group and RMS normalisation.
#include "ops/nn/norm.h"

#include "base/checked.h"
#include "ops/nn/channels_last.h"

namespace taeda {

Tensor normalized_gradient(const Tensor& x, const Tensor& gy, double eps, bool centered) {
  Tensor n(static_cast<double>(x.size(1)));
  Dims row{1};
  Tensor c = centered ? x - sum(x, row, true) / n : x;
  Tensor rstd = op<"rsqrt">(sum(c * c, row, true) / n + eps);
  Tensor hat = c * rstd;
  Tensor inner = gy - hat * (sum(gy * hat, row, true) / n);
  return rstd * (centered ? inner - sum(gy, row, true) / n : inner);
}
Tensor normalized_rows(const Tensor& x, double eps, bool centered) {
  Tensor n(static_cast<double>(x.size(1)));
  Tensor c = centered ? x - sum(x, Dims{1}, true) / n : x;
  return c * op<"rsqrt">(sum(c * c, Dims{1}, true) / n + eps);
}

namespace {

void check_affine(const char* what, const char* argument, const Tensor& t, DimsRef sizes) {
  if (!t.defined()) return;
  check(same(t.sizes(), sizes), what, "(): expected ", argument, " to be of shape ",
        to_string(sizes), ", but got ", to_string(t.sizes()));
}

// ---- rows: layer, group and RMS norm ----

TensorList rows_forward(const char* what, RowNormShape s, const Tensor& self, const Tensor& weight,
                        const Tensor& bias) {
  DType compute = compute_of(self, what);
  Options o{compute, self.device()};
  Tensor w = prepared(weight, compute), b = prepared(bias, compute);
  Tensor mean = empty({Dims{s.rows}}, o), rstd = empty({Dims{s.rows}}, o);
  const ChannelLayout layout{s.channels_last};
  const Tensor x = layout.operand(self, self.dtype()), y = empty(x.sizes(), self.options());
  if (y.numel() && !y.is_meta()) {
    visit_floating(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<NormKernels<T>>(x.device())
          .row_norm(s, x.dtype(), x.data(), memory<T>(w), memory<T>(b), y.data(), mean.data_as<T>(),
                    rstd.data_as<T>());
    });
  }
  return {layout.result(y, self.dtype()), mean, rstd};
}

TensorList rows_backward(const char* what, RowNormShape s, const Tensor& grad, const Tensor& self,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                         bool affine) {
  DType compute = mean.dtype();
  check(same(grad.sizes(), self.sizes()) && grad.is_meta() == self.is_meta(), what,
        "_backward(): expected grad to be of shape ", to_string(self.sizes()), ", but got ",
        to_string(grad.sizes()));
  check(mean.numel() == s.rows && rstd.numel() == s.rows && rstd.dtype() == compute &&
            mean.is_contiguous() && rstd.is_contiguous(),
        what, "_backward(): expected mean and rstd to hold one value for each of ", s.rows,
        " rows, but got shapes ", to_string(mean.sizes()), " and ", to_string(rstd.sizes()));
  check(!weight.defined() || weight.numel() == s.groups * s.channels, what,
        "_backward(): expected weight to have ", s.groups * s.channels, " elements, but got shape ",
        weight.defined() ? to_string(weight.sizes()) : to_string(Dims{}));
  Options o{compute, self.device()};
  const Dims parameters = weight.defined() ? Dims(weight.sizes()) : Dims{s.groups * s.channels};
  const DType affine_dtype = weight.defined() ? weight.dtype() : self.dtype();
  Tensor w = prepared(weight, compute), gw = zeros(parameters, o), gb = zeros(parameters, o);
  const DType data = compute == compute_of(self, what) ? self.dtype() : compute;
  const ChannelLayout layout{s.channels_last};
  const Tensor g = layout.operand(grad, data), x = layout.operand(self, data),
               gx = empty(x.sizes(), {data, self.device()});
  if (gx.numel() && !gx.is_meta()) {
    visit_floating(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<NormKernels<T>>(x.device())
          .row_norm_backward(s, x.dtype(), g.data(), x.data(), mean.data_as<T>(), rstd.data_as<T>(),
                             memory<T>(w), gx.data(), affine ? gw.data_as<T>() : nullptr,
                             affine ? gb.data_as<T>() : nullptr);
    });
  }
  return {layout.result(gx, self.dtype()), finished(gw, affine_dtype), finished(gb, affine_dtype)};
}

RowNormShape layer_shape(const Tensor& self, DimsRef normalized, double eps, bool centered) {
  int64_t n = numel_of(normalized);
  return {n ? self.numel() / n : 0, 1, n, 1, eps, centered};
}

void check_normalized(const char* what, const Tensor& self, DimsRef normalized) {
  check(!normalized.empty(), what,
        "(): expected normalized_shape to be at least 1-dimensional, i.e., containing at "
        "least one element, but got normalized_shape = []");
  auto k = static_cast<int64_t>(normalized.size());
  bool fits = self.dim() >= k && same(self.sizes().last(normalized.size()), normalized);
  check(fits, "Given normalized_shape=", to_string(normalized), ", expected input with shape [*, ",
        to_string(normalized).text().substr(1), ", but got input of size", to_string(self.sizes()));
}

TensorList native_layer_norm(const Tensor& self, const Dims& normalized, const Tensor& weight,
                             const Tensor& bias, double eps) {
  check_normalized("layer_norm", self, normalized);
  check_affine("layer_norm", "weight", weight, normalized);
  check_affine("layer_norm", "bias", bias, normalized);
  return rows_forward("layer_norm", layer_shape(self, normalized, eps, true), self, weight, bias);
}

TensorList native_layer_norm_backward(const Tensor& grad, const Tensor& self,
                                      const Dims& normalized, const Tensor& mean,
                                      const Tensor& rstd, const Tensor& weight, bool affine) {
  check_normalized("layer_norm_backward", self, normalized);
  return rows_backward("layer_norm", layer_shape(self, normalized, 0, true), grad, self, mean, rstd,
                       weight, affine);
}

// Whether the gradient of weight or bias (arguments 2 and 3) is needed.
bool affine_needed(Backward& b, bool bias = true) {
  return (b.has(2) && b.needs(2)) || (bias && b.has(3) && b.needs(3));
}

// Sizes of x as a matrix with rows of n elements.
Dims as_rows(const Tensor& x, int64_t n) { return {n ? x.numel() / n : 0, n}; }

void layer_norm_backward(Backward& b) {
  Tensor g = b.grad(), x = b.arg<Tensor>(0), w = b.arg<Tensor>(2);
  if (!g.defined()) return;
  Dims normalized = b.arg<Dims>(1);
  double eps = b.arg<double>(4);
  if (!derivative_in_ops()) {
    TensorList r = ops<"native_layer_norm_backward">(g, x, normalized, b.out(1), b.out(2), w,
                                                     affine_needed(b));
    b.set(0, r[0]);
    if (b.has(2)) b.set(2, r[1]);
    if (b.has(3)) b.set(3, b.dtype(3) == r[2].dtype() ? r[2] : to(r[2], b.dtype(3)));
    return;
  }
  Dims rows = as_rows(x, numel_of(normalized));
  Tensor gy = w.defined() ? g * w : g;
  if (b.needs(0)) {
    b.set(0,
          reshape(normalized_gradient(reshape(x, rows), reshape(gy, rows), eps, true), x.sizes()));
  }
  if (b.has(2) && b.needs(2)) {
    b.set(2,
          sum_to(g * reshape(normalized_rows(reshape(x, rows), eps, true), x.sizes()), normalized));
  }
  if (b.has(3) && b.needs(3)) b.set(3, sum_to(g, normalized));
}

Tensor layer_norm(const Tensor& self, const Dims& normalized, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return ops<"native_layer_norm">(self, normalized, weight, bias, eps)[0];
}

Tensor rms_norm(const Tensor& self, const Dims& normalized, const Tensor& weight,
                std::optional<double> eps) {
  double e = eps.value_or(to_real(self.dtype()) == DType::Float64 ? 0x1p-52 : 0x1p-23);
  if (is_complex(self.dtype())) {  // rare: computed by the definition, with x * x (not |x|^2)
    Dims last;
    for (size_t d = 0; d < normalized.size(); ++d) last.push_back(-1 - static_cast<int64_t>(d));
    Tensor count(static_cast<double>(numel_of(normalized)));
    Tensor y = self * op<"rsqrt">(sum(self * self, last, true) / count + e);
    return weight.defined() ? y * weight : y;
  }
  return ops<"native_rms_norm">(self, normalized, weight, e)[0];
}

TensorList native_rms_norm(const Tensor& self, const Dims& normalized, const Tensor& weight,
                           double eps) {
  check_normalized("rms_norm", self, normalized);
  check_affine("rms_norm", "weight", weight, normalized);
  return rows_forward("rms_norm", layer_shape(self, normalized, eps, false), self, weight, {});
}

TensorList native_rms_norm_backward(const Tensor& grad, const Tensor& self, const Dims& normalized,
                                    const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                    bool affine) {
  check_normalized("rms_norm_backward", self, normalized);
  return rows_backward("rms_norm", layer_shape(self, normalized, 0, false), grad, self, mean, rstd,
                       weight, affine);
}

void rms_norm_backward(Backward& b) {
  Tensor g = b.grad(), x = b.arg<Tensor>(0), w = b.arg<Tensor>(2);
  if (!g.defined()) return;
  Dims normalized = b.arg<Dims>(1);
  if (!derivative_in_ops()) {
    TensorList r = ops<"native_rms_norm_backward">(g, x, normalized, b.out(1), b.out(2), w,
                                                   affine_needed(b, false));
    b.set(0, r[0]);
    if (b.has(2)) b.set(2, r[1]);
    return;
  }
  Dims rows = as_rows(x, numel_of(normalized));
  double eps = b.arg<double>(3);
  Tensor gy = w.defined() ? g * w : g;
  b.set(0,
        reshape(normalized_gradient(reshape(x, rows), reshape(gy, rows), eps, false), x.sizes()));
  if (b.has(2) && b.needs(2)) {
    b.set(2, sum_to(g * reshape(normalized_rows(reshape(x, rows), eps, false), x.sizes()),
                    normalized));
  }
}

// ---- group norm ----

RowNormShape group_shape(const Tensor& self, int64_t groups, double eps) {
  int64_t n = self.size(0), c = self.size(1), spatial = n * c > 0 ? self.numel() / (n * c) : 0;
  const bool last = is_channels_last(self) && has_kernels<NormKernels<float>>(self.device()) &&
                    kernels<NormKernels<float>>(self.device()).takes_channels_last;
  return {checked_mul(n, groups), groups, c / groups, spatial, eps, true, last};
}

void check_groups(const Tensor& self, int64_t groups) {
  check(self.dim() >= 2,
        "group_norm(): Expected at least 2 dimensions for input tensor but received ", self.dim());
  check(groups > 0, "group_norm(): num_groups must be positive, got ", groups);
  check(self.size(1) % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input "
        "of shape ",
        to_string(self.sizes()), " and num_groups=", groups);
}

TensorList native_group_norm(const Tensor& self, int64_t groups, const Tensor& weight,
                             const Tensor& bias, double eps) {
  check_groups(self, groups);
  int64_t channels = self.size(1);
  check_affine("group_norm", "weight", weight, Dims{channels});
  check_affine("group_norm", "bias", bias, Dims{channels});
  return rows_forward("group_norm", group_shape(self, groups, eps), self, weight, bias);
}

TensorList native_group_norm_backward(const Tensor& grad, const Tensor& self, int64_t groups,
                                      const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                      bool affine) {
  check_groups(self, groups);
  return rows_backward("group_norm", group_shape(self, groups, 0), grad, self, mean, rstd, weight,
                       affine);
}

void group_norm_backward(Backward& b) {
  Tensor g = b.grad(), x = b.arg<Tensor>(0), w = b.arg<Tensor>(2);
  if (!g.defined()) return;
  int64_t groups = b.arg<int64_t>(1);
  if (!derivative_in_ops()) {
    TensorList r =
        ops<"native_group_norm_backward">(g, x, groups, b.out(1), b.out(2), w, affine_needed(b));
    b.set(0, r[0]);
    if (b.has(2)) b.set(2, r[1]);
    if (b.has(3)) b.set(3, r[2]);
    return;
  }
  double eps = b.arg<double>(4);
  int64_t count = x.size(0) * groups;
  Dims rows{count, count ? x.numel() / count : 0}, channel = channel_dims(b.sizes(0)),
                                                   flat{x.size(1)};
  Tensor gy = w.defined() ? g * reshape(w, channel) : g;
  if (b.needs(0)) {
    b.set(0,
          reshape(normalized_gradient(reshape(x, rows), reshape(gy, rows), eps, true), x.sizes()));
  }
  if (b.has(2) && b.needs(2)) {
    Tensor hat = reshape(normalized_rows(reshape(x, rows), eps, true), x.sizes());
    b.set(2, reshape(sum_to(g * hat, channel), flat));
  }
  if (b.has(3) && b.needs(3)) b.set(3, reshape(sum_to(g, channel), flat));
}

Tensor group_norm(const Tensor& self, int64_t groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  return ops<"native_group_norm">(self, groups, weight, bias, eps)[0];
}

const Define norm_ops[] = {
    {"layer_norm(self: Tensor, normalized_shape: int[], weight: Tensor? = None, bias: Tensor? = "
     "None, eps: float = "
     "1e-05) -> Tensor",
     "Each row over the last dimensions `normalized_shape` is brought to mean 0 and variance 1, "
     "then scaled by `weight` "
     "and shifted by `bias` (Ba, Kiros & Hinton 2016).",
     kernel(layer_norm),
     {.forms = kFunction, .composite = true, .autocast = kFloat32OnCuda}},
    {"native_layer_norm(self: Tensor, normalized_shape: int[], weight: Tensor?, bias: Tensor?, "
     "eps: float) -> (Tensor, "
     "Tensor, Tensor)",
     "layer_norm with the mean and reciprocal deviation of each row.",
     kernel(native_layer_norm),
     {.backward = layer_norm_backward,
      .saves = saves_arg(0) | saves_arg(2) | saves_out(1) | saves_out(2),
      .forms = 0,
      .non_differentiable = kStats,
      .autocast = kFloat32OnCuda}},
    {"native_layer_norm_backward(grad: Tensor, self: Tensor, normalized_shape: int[], mean: "
     "Tensor, rstd: Tensor, weight: "
     "Tensor?, affine: bool = True) -> (Tensor, Tensor, Tensor)",
     "Gradients of layer_norm in one pass; those of weight and bias are 0 without `affine`.",
     kernel(native_layer_norm_backward),
     {.forms = 0}},
    {"rms_norm(self: Tensor, normalized_shape: int[], weight: Tensor? = None, eps: float? = None) "
     "-> Tensor",
     "Divides each row over the last dimensions by its root mean square (Zhang & Sennrich 2019). "
     "`eps` is the machine "
     "epsilon of the dtype where it is not given.",
     kernel(rms_norm),
     {.forms = kFunction, .composite = true}},
    {"native_rms_norm(self: Tensor, normalized_shape: int[], weight: Tensor?, eps: float) -> "
     "(Tensor, Tensor, Tensor)",
     "rms_norm with the statistics that its gradient needs.",
     kernel(native_rms_norm),
     {.backward = rms_norm_backward,
      .saves = saves_arg(0) | saves_arg(2) | saves_out(1) | saves_out(2),
      .forms = 0,
      .non_differentiable = kStats}},
    {"native_rms_norm_backward(grad: Tensor, self: Tensor, normalized_shape: int[], mean: Tensor, "
     "rstd: Tensor, weight: "
     "Tensor?, affine: bool = True) -> (Tensor, Tensor, Tensor)",
     "Gradients of rms_norm in one pass.",
     kernel(native_rms_norm_backward),
     {.forms = 0}},
    {"group_norm(self: Tensor, num_groups: int, weight: Tensor? = None, bias: Tensor? = None, eps: "
     "float = 1e-05) -> "
     "Tensor",
     "Normalises each sample's channels in `num_groups` groups (Wu & He 2018). Input: (N, C, *).",
     kernel(group_norm),
     {.forms = kFunction, .composite = true, .autocast = kFloat32OnCuda}},
    {"native_group_norm(self: Tensor, num_groups: int, weight: Tensor?, bias: Tensor?, eps: float) "
     "-> (Tensor, Tensor, "
     "Tensor)",
     "group_norm with the mean and reciprocal deviation of each group.",
     kernel(native_group_norm),
     {.backward = group_norm_backward,
      .saves = saves_arg(0) | saves_arg(2) | saves_out(1) | saves_out(2),
      .forms = 0,
      .non_differentiable = kStats,
      .format_of = 0b1}},
    {"native_group_norm_backward(grad: Tensor, self: Tensor, num_groups: int, mean: Tensor, rstd: "
     "Tensor, weight: "
     "Tensor?, affine: bool = True) -> (Tensor, Tensor, Tensor)",
     "Gradients of group_norm in one pass.",
     kernel(native_group_norm_backward),
     {.forms = 0, .format_of = 0b10}},
};

}  // namespace
}  // namespace taeda
