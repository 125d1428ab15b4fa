// Average pooling, adaptive too.
#include "ops/nn/pool.h"

namespace taeda {
namespace {

using namespace pooling;

template <int N>
Tensor avg_pool(const Tensor& self, const Dims& kernel, const Dims& stride, const Dims& padding,
                bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  static constexpr const char* names[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};
  const char* what = names[N - 1];
  check_input(what, self, N);
  check(!divisor || *divisor != 0, "divisor must be not zero");
  Pool p = expanded(what, N, kernel, stride, padding, Dims{1}, ceil_mode);
  Dims out = output_sizes(what, self, p);
  DType compute = self.dtype() == DType::Int64 ? DType::Int64 : compute_dtype(self.dtype(), what);
  const ChannelLayout layout = layout_of(self, N);
  Tensor y = empty(layout.moved(with_spatial(self, out)), {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = layout.operand(self, compute);
    visit_pooled(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(x.device())
          .avg_pool(windows(self, out, p, layout), {count_include_pad, divisor.value_or(0)},
                    x.data_as<T>(), y.data_as<T>());
    });
  }
  return layout.result(y, self.dtype());
}

void check_gradient(const char* what, const Tensor& grad, DimsRef sizes, int64_t n) {
  bool fits = n >= 1 && n <= 3 && static_cast<int64_t>(sizes.size()) >= n &&
              grad.sizes().size() == sizes.size();
  auto outer = fits ? sizes.size() - static_cast<size_t>(n) : 0;
  check(fits && same(sizes.first(outer), grad.sizes().first(outer)), what, "(): grad of shape ",
        to_string(grad.sizes()), " does not fit an input of shape ", to_string(sizes), " with ", n,
        " spatial dimensions");
}

Tensor avg_pool_gradient(const Tensor& grad, const Dims& sizes, const Dims& kernel,
                         const Dims& stride, const Dims& padding, bool ceil_mode,
                         bool count_include_pad, std::optional<int64_t> divisor, int64_t n) {
  check_gradient("avg_pool_backward", grad, sizes, n);
  DType compute = compute_dtype(grad.dtype(), "avg_pool_backward");
  const ChannelLayout layout = layout_of(grad, n);
  const Tensor gx = layout.result(zeros(layout.moved(sizes), {compute, grad.device()}), compute);
  if (grad.numel() && !gx.is_meta()) {
    Tensor g = layout.operand(grad, compute);
    Pool p = expanded("avg_pool_backward", n, kernel, stride, padding, Dims{1}, ceil_mode);
    Dims out(grad.sizes().last(static_cast<size_t>(n)));
    check(same(out, output_sizes("avg_pool_backward", gx, p)),
          "avg_pool_backward(): grad of shape ", to_string(grad.sizes()),
          " is not that of an average over ", to_string(sizes));
    visit_floating(compute, "avg_pool_backward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(g.device())
          .avg_pool_backward(windows(gx, out, p, layout), {count_include_pad, divisor.value_or(0)},
                             g.data_as<T>(), gx.data_as<T>());
    });
  }
  return finished(gx, grad.dtype());
}

template <int N> void avg_pool_backward(Backward& b) {
  b.set(0, op<"_avg_pool_backward">(b.grad(), b.sizes(0), b.arg<Dims>(1), b.arg<Dims>(2),
                                    b.arg<Dims>(3), b.arg<bool>(4), b.arg<bool>(5),
                                    b.arg<std::optional<int64_t>>(6), N));
}
void avg_pool_second(
    Backward& b) {  // averaging is linear: the gradient of its gradient is averaging again
  Dims kernel = b.arg<Dims>(2), stride = b.arg<Dims>(3), padding = b.arg<Dims>(4);
  bool ceil_mode = b.arg<bool>(5), include = b.arg<bool>(6);
  auto divisor = b.arg<std::optional<int64_t>>(7);
  Tensor g = b.grad();
  switch (b.arg<int64_t>(8)) {
    case 1:
      b.set(0, op<"_avg_pool1d">(g, kernel, stride, padding, ceil_mode, include, divisor));
      break;
    case 2:
      b.set(0, op<"avg_pool2d">(g, kernel, stride, padding, ceil_mode, include, divisor));
      break;
    default:
      b.set(0, op<"avg_pool3d">(g, kernel, stride, padding, ceil_mode, include, divisor));
      break;
  }
}

Tensor avg_pool1d(const Tensor& self, const Dims& kernel, const Dims& stride, const Dims& padding,
                  bool ceil_mode, bool count_include_pad) {
  return op<"_avg_pool1d">(self, kernel, stride, padding, ceil_mode, count_include_pad,
                           std::nullopt);
}

template <int N> Tensor adaptive_avg_pool(const Tensor& self, const Dims& out) {
  static constexpr const char* names[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                          "adaptive_avg_pool3d"};
  const char* what = names[N - 1];
  // As in PyTorch, no channels at all are refused in three dimensions alone.
  Dims sizes = adaptive_sizes(what, self, out, N, N == 3);
  DType compute = compute_dtype(self.dtype(), what);
  const ChannelLayout layout = layout_of(self, N);
  Tensor y = empty(layout.moved(sizes), {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = layout.operand(self, compute);
    visit_floating(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(x.device())
          .avg_pool(plane_shape(self, out, N, layout), {}, x.data_as<T>(), y.data_as<T>());
    });
  }
  return layout.result(y, self.dtype());
}

Tensor adaptive_avg_gradient(const Tensor& grad, const Dims& sizes, int64_t n) {
  check_gradient("adaptive_avg_pool_backward", grad, sizes, n);
  DType compute = compute_dtype(grad.dtype(), "adaptive_avg_pool_backward");
  const ChannelLayout layout = layout_of(grad, n);
  const Tensor gx = layout.result(zeros(layout.moved(sizes), {compute, grad.device()}), compute);
  if (grad.numel() && !gx.is_meta()) {
    Tensor g = layout.operand(grad, compute);
    auto s = plane_shape(gx, grad.sizes().last(static_cast<size_t>(n)), n, layout);
    visit_floating(compute, "adaptive_avg_pool_backward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(g.device()).avg_pool_backward(s, {}, g.data_as<T>(), gx.data_as<T>());
    });
  }
  return finished(gx, grad.dtype());
}

template <int N> void adaptive_avg_backward(Backward& b) {
  b.set(0, op<"_adaptive_avg_pool_backward">(b.grad(), b.sizes(0), N));
}
void adaptive_avg_second(Backward& b) {
  int64_t n = b.arg<int64_t>(2);
  Dims out(DimsRef(b.sizes(0)).last(static_cast<size_t>(n)));
  if (n == 1) b.set(0, op<"adaptive_avg_pool1d">(b.grad(), out));
  else if (n == 2) b.set(0, op<"adaptive_avg_pool2d">(b.grad(), out));
  else b.set(0, op<"adaptive_avg_pool3d">(b.grad(), out));
}

template <int N>
constexpr Traits kAverage{.backward = avg_pool_backward<N>,
                          .forms = kFunction | kOut,
                          .module = home<N>,
                          .format_of = 0b1};
template <int N>
constexpr Traits kAdaptive{
    .backward = adaptive_avg_backward<N>, .forms = kFunction, .module = home<N>, .format_of = 0b1};

constexpr const char* kAvgDoc =
    "The mean of each window of an input (N, C, *) or (C, *).\n\n"
    "`stride` defaults to `kernel_size`; `padding` zeros are put at both ends, and count in the "
    "mean with `count_include_pad`; `ceil_mode` includes a last window that is not whole. Where "
    "there is a `divisor_override`, the sum of a window is divided by it instead of by its size.";

const Define avg_pool_ops[] = {
    {"_avg_pool1d(self: Tensor, kernel_size: int[1], stride: int[1] = [], padding: int[1] = 0, "
     "ceil_mode: bool = False, "
     "count_include_pad: bool = True, divisor_override: int? = None) -> Tensor",
     kAvgDoc, kernel(avg_pool<1>), kAverage<1>.with(vmap::folded(1))},
    {"avg_pool1d(self: Tensor, kernel_size: int[1], stride: int[1] = [], padding: int[1] = 0, "
     "ceil_mode: bool = False, "
     "count_include_pad: bool = True) -> Tensor",
     kAvgDoc, kernel(avg_pool1d), kComposite},
    {"avg_pool2d(self: Tensor, kernel_size: int[2], stride: int[2] = [], padding: int[2] = 0, "
     "ceil_mode: bool = False, "
     "count_include_pad: bool = True, divisor_override: int? = None) -> Tensor",
     kAvgDoc, kernel(avg_pool<2>), kAverage<2>.with(vmap::folded(2))},
    {"avg_pool3d(self: Tensor, kernel_size: int[3], stride: int[3] = [], padding: int[3] = 0, "
     "ceil_mode: bool = False, "
     "count_include_pad: bool = True, divisor_override: int? = None) -> Tensor",
     kAvgDoc, kernel(avg_pool<3>), kAverage<3>.with(kFloat32OnCpu).with(vmap::folded(3))},
    {"_avg_pool_backward(grad: Tensor, sizes: int[], kernel_size: int[], stride: int[], padding: "
     "int[], ceil_mode: bool, "
     "count_include_pad: bool, divisor_override: int?, spatial: int) -> Tensor",
     "Gradient of average pooling.",
     kernel(avg_pool_gradient),
     {.backward = avg_pool_second, .forms = 0, .format_of = 0b1, .vmap = vmap::folded(0)}},
    {"adaptive_avg_pool1d(self: Tensor, output_size: int[1]) -> Tensor",
     "Averages over windows chosen so that the output has `output_size`.",
     kernel(adaptive_avg_pool<1>), kAdaptive<1>.with(vmap::folded(1))},
    {"adaptive_avg_pool2d(self: Tensor, output_size: int[2]) -> Tensor",
     "Averages over windows chosen so that the output has `output_size`.",
     kernel(adaptive_avg_pool<2>), kAdaptive<2>.with(vmap::folded(2))},
    {"adaptive_avg_pool3d(self: Tensor, output_size: int[3]) -> Tensor",
     "Averages over windows chosen so that the output has `output_size`.",
     kernel(adaptive_avg_pool<3>), kAdaptive<3>.with(kFloat32OnCpu).with(vmap::folded(3))},
    {"_adaptive_avg_pool_backward(grad: Tensor, sizes: int[], spatial: int) -> Tensor",
     "Gradient of adaptive average pooling.",
     kernel(adaptive_avg_gradient),
     {.backward = adaptive_avg_second, .forms = 0, .format_of = 0b1, .vmap = vmap::folded(0)}},
};

}  // namespace
}  // namespace taeda
