// Batch normalisation.
#include "ops/nn/channels_last.h"
#include "ops/nn/norm.h"

namespace taeda {
namespace {

BatchNormShape batch_shape(const Tensor& x, double eps) {
  int64_t n = x.size(0), c = x.dim() > 1 ? x.size(1) : 0;
  const int64_t spatial = n * c > 0 ? x.numel() / (n * c) : 0;
  if (is_channels_last(x)) return {n * spatial, c, 1, eps};
  return {n, c, spatial, eps};
}

// running = (1 - momentum) * running + momentum * factor * value, in place and outside autograd.
void update_running(const Tensor& running, const Tensor& value, double factor, double momentum) {
  if (!running.defined() || running.is_meta()) return;
  const Tensor r = prepared(running, value.dtype());
  visit_floating(value.dtype(), "batch_norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<BatchNormKernels<T>>(r.device())
        .update_running(r.numel(), momentum, factor, value.data_as<T>(), r.data_as<T>());
  });
  if (!r.is(running)) copy_into(running, r);
  running.bump_version();
}

TensorList native_batch_norm(const Tensor& self, const Tensor& weight, const Tensor& bias,
                             const Tensor& running_mean, const Tensor& running_var, bool training,
                             double momentum, double eps) {
  check<IndexError>(
      self.dim() >= 2 || (self.dim() == 1 && self.numel() == 0),
      "batch_norm(): expected input with at least 2 dimensions (N, C, ...), got shape ",
      to_string(self.sizes()));
  int64_t channels = self.dim() > 1 ? self.size(1) : 0;
  const std::pair<const char*, const Tensor*> vectors[] = {{"weight", &weight},
                                                           {"bias", &bias},
                                                           {"running_mean", &running_mean},
                                                           {"running_var", &running_var}};
  for (auto [argument, t] : vectors) {
    check(!t->defined() || t->numel() == channels, "batch_norm(): ", argument, " should contain ",
          channels, " elements not ", t->defined() ? t->numel() : 0);
  }
  check(training || (running_mean.defined() && running_var.defined()),
        "Expected running_mean and running_var to be defined when training=False");
  DType compute = compute_of(self, "batch_norm");
  const DType data = kernel_dtype<BatchNormKernels>(self.dtype(), self.device(), "batch_norm");
  Options o{compute, self.device()};
  const ChannelLayout layout{is_channels_last(self)};
  Tensor x = layout.operand(self, data), w = prepared(weight, compute), b = prepared(bias, compute);
  Tensor y = empty(x.sizes(), {data, self.device()}), mean = empty(Dims{channels}, o),
         invstd = empty(Dims{channels}, o);
  if (self.is_meta()) return {layout.result(y, self.dtype()), mean, invstd};
  BatchNormShape s = batch_shape(self, eps);
  Tensor var = training ? empty(Dims{channels}, o) : prepared(running_var, compute);
  if (!training) copy_into(mean, running_mean);
  visit_kernel_dtype(data, "batch_norm", [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = typename BatchNormKernels<S>::T;
    const auto& run = kernels<BatchNormKernels<S>>(x.device());
    if (training)
      run.batch_norm_training(s, x.data_as<S>(), memory<T>(w), memory<T>(b), mean.data_as<T>(),
                              var.data_as<T>(), invstd.data_as<T>(), y.data_as<S>());
    else
      run.batch_norm(s, x.data_as<S>(), mean.data_as<T>(), var.data_as<T>(), memory<T>(w),
                     memory<T>(b), invstd.data_as<T>(), y.data_as<S>());
  });
  if (training && self.numel()) {
    const double count = static_cast<double>(s.batch * s.spatial);
    update_running(running_mean, mean, 1, momentum);
    update_running(running_var, var, count / (count - 1), momentum);
  }
  return {layout.result(y, self.dtype()), mean, invstd};
}

TensorList native_batch_norm_backward(const Tensor& grad, const Tensor& self, const Tensor& weight,
                                      const Tensor& mean, const Tensor& invstd, bool training) {
  DType compute = mean.dtype();
  check(self.dim() >= 2 && same(grad.sizes(), self.sizes()) && grad.is_meta() == self.is_meta(),
        "batch_norm_backward(): expected grad and self of one shape (N, C, ...), but got ",
        to_string(grad.sizes()), " and ", to_string(self.sizes()));
  int64_t channels = self.size(1);
  check(same(mean.sizes(), Dims{channels}) && same(invstd.sizes(), Dims{channels}) &&
            invstd.dtype() == compute && mean.is_contiguous() && invstd.is_contiguous() &&
            (!weight.defined() || weight.numel() == channels),
        "batch_norm_backward(): expected mean, invstd and weight to hold one value for each of ",
        channels, " channels");
  Options o{compute, self.device()};
  const DType data = compute == compute_of(self, "batch_norm")
                         ? kernel_dtype<BatchNormKernels>(self.dtype(), self.device(), "batch_norm")
                         : compute;
  const ChannelLayout layout{is_channels_last(self)};
  Tensor g = layout.operand(grad, data), x = layout.operand(self, data);
  Tensor w = prepared(weight, compute);
  Tensor gx = empty(x.sizes(), {data, self.device()}), gw = zeros(mean.sizes(), o),
         gb = zeros(mean.sizes(), o);
  if (gx.numel() && !gx.is_meta()) {
    visit_kernel_dtype(data, "batch_norm", [&](auto tag) {
      using S = typename decltype(tag)::type;
      using T = typename BatchNormKernels<S>::T;
      kernels<BatchNormKernels<S>>(x.device())
          .batch_norm_backward(batch_shape(self, 0), training, g.data_as<S>(), x.data_as<S>(),
                               mean.data_as<T>(), invstd.data_as<T>(), memory<T>(w),
                               gx.data_as<S>(), gw.data_as<T>(), gb.data_as<T>());
    });
  }
  DType affine = weight.defined() ? weight.dtype() : self.dtype();
  return {layout.result(gx, self.dtype()), finished(gw, affine), finished(gb, affine)};
}

void batch_norm_backward(Backward& b) {
  Tensor g = b.grad(), x = b.arg<Tensor>(0), w = b.arg<Tensor>(1);
  if (!g.defined()) return;
  if (b.sizes(0).size() < 2) return b.set(0, g);  // an empty vector: nothing was normalised
  bool training = b.arg<bool>(5);
  if (!derivative_in_ops()) {
    TensorList r = ops<"native_batch_norm_backward">(g, x, w, b.out(1), b.out(2), training);
    b.set(0, r[0]);
    if (b.has(1)) b.set(1, r[1]);
    if (b.has(2)) b.set(2, r[2]);
    return;
  }
  // Composed of ops, on rows (C, N * S).
  double eps = b.arg<double>(7);
  Dims channel = channel_dims(b.sizes(0)), flat{x.size(1)};
  Dims rows{x.size(1), x.size(1) ? x.numel() / x.size(1) : 0};
  auto to_rows = [&](const Tensor& t) { return reshape(transpose(t, 0, 1), rows); };
  auto from_rows = [&](const Tensor& t) {
    Dims swapped = b.sizes(0);
    std::swap(swapped[0], swapped[1]);
    return transpose(reshape(t, swapped), 0, 1);
  };
  Tensor gy = w.defined() ? g * reshape(w, channel) : g;
  Tensor fixed = reshape(b.out(2), channel);
  Tensor hat = training ? from_rows(normalized_rows(to_rows(x), eps, true))
                        : (x - reshape(b.out(1), channel)) * fixed;
  if (b.needs(0)) {
    b.set(0, training ? from_rows(normalized_gradient(to_rows(x), to_rows(gy), eps, true))
                      : gy * fixed);
  }
  if (b.has(1) && b.needs(1)) b.set(1, reshape(sum_to(g * hat, channel), flat));
  if (b.has(2) && b.needs(2)) b.set(2, reshape(sum_to(g, channel), flat));
}

Tensor batch_norm(const Tensor& self, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps) {
  return ops<"native_batch_norm">(self, weight, bias, running_mean, running_var, training, momentum,
                                  eps)[0];
}

const Define batch_norm_ops[] = {
    {"batch_norm(self: Tensor, weight: Tensor?, bias: Tensor?, running_mean: Tensor?, running_var: "
     "Tensor?, training: "
     "bool, momentum: float, eps: float) -> Tensor",
     "Normalises each channel over the batch (Ioffe & Szegedy 2015). Input: (N, C, *). In training "
     "the running "
     "statistics, where given, move by `momentum`; otherwise they are used.",
     kernel(batch_norm),
     {.forms = kFunction, .composite = true}},
    {"native_batch_norm(self: Tensor, weight: Tensor?, bias: Tensor?, running_mean: Tensor?, "
     "running_var: Tensor?, "
     "training: bool, momentum: float, eps: float) -> (Tensor, Tensor, Tensor)",
     "batch_norm with the mean and reciprocal deviation it used.",
     kernel(native_batch_norm),
     {.backward = batch_norm_backward,
      .saves = saves_arg(0) | saves_arg(1) | saves_out(1) | saves_out(2),
      .forms = 0,
      .non_differentiable = kStats,
      .format_of = 0b1}},
    {"native_batch_norm_backward(grad: Tensor, self: Tensor, weight: Tensor?, mean: Tensor, "
     "invstd: Tensor, training: "
     "bool) -> (Tensor, Tensor, Tensor)",
     "Gradients of batch_norm in one pass.",
     kernel(native_batch_norm_backward),
     {.forms = 0, .format_of = 0b10}},
};

}  // namespace
}  // namespace taeda
