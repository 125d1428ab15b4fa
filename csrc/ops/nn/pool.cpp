// Max, average and adaptive pooling over one, two or three spatial dimensions.
#include "kernels/pool.h"

#include "autograd/backward.h"
#include "base/checked.h"
#include "kernels/scatter.h"
#include "ops/core/half.h"
#include "ops/index/util.h"

namespace taeda {
namespace {

// Input (N, C, *spatial) or (C, *spatial): the leading dimensions are flattened into planes.
PoolShape plane_shape(const Tensor& x, DimsRef out, int64_t n) {
  PoolShape s{};
  s.adaptive = true;
  s.spatial = static_cast<int>(n);
  s.planes = 1;
  for (int64_t d = 0; d < x.dim() - n; ++d) s.planes *= x.size(d);
  for (int64_t d = 0; d < n; ++d) {
    s.in[d] = x.size(x.dim() - n + d);
    s.out[d] = out[static_cast<size_t>(d)];
  }
  return s;
}

Dims with_spatial(const Tensor& x, const Dims& spatial) {
  Dims sizes(x.sizes().first(x.sizes().size() - spatial.size()));
  for (int64_t v : spatial) sizes.push_back(v);
  return sizes;
}

int64_t plane(DimsRef sizes, size_t n) { return numel_of(sizes.last(n)); }

struct Pool {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
};

Pool expanded(const char* what, int64_t n, const Dims& kernel, const Dims& stride,
              const Dims& padding, const Dims& dilation, bool ceil_mode) {
  auto spread = [&](const Dims& d, const char* argument) {
    check(d.size() == 1 || static_cast<int64_t>(d.size()) == n, what, "(): ", argument,
          " must either be a single int, "
          "or a tuple of ",
          n, " ints, got ", to_string(d));
    return d.size() == 1 ? Dims(static_cast<size_t>(n), d[0]) : d;
  };
  Pool p{spread(kernel, "kernel_size"),
         {},
         spread(padding, "padding"),
         spread(dilation, "dilation"),
         ceil_mode};
  p.stride = stride.empty() ? p.kernel : spread(stride, "stride");
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    check(p.kernel[i] > 0, what, "(): kernel size should be greater than zero, but got ",
          to_string(p.kernel));
    check(p.stride[i] > 0, what, "(): stride should not be zero, but got ", to_string(p.stride));
    check(p.dilation[i] > 0, what, "(): dilation should be greater than zero, but got ",
          to_string(p.dilation));
    check(p.padding[i] >= 0, what, "(): pad must be non-negative, but got pad: ", p.padding[i]);
    check(p.padding[i] <= checked_reach(p.kernel[i], p.dilation[i]) / 2, what,
          "(): pad should be at most half of effective kernel size, but got pad=", p.padding[i],
          ", kernel_size=", p.kernel[i], " and dilation=", p.dilation[i]);
  }
  return p;
}

void check_input(const char* what, const Tensor& x, int64_t n, bool channels = true) {
  check(x.dim() == n + 1 || x.dim() == n + 2, what, "(): Expected ", n + 1, "D or ", n + 2,
        "D (batch mode) tensor for input, but got: ", to_string(x.sizes()));
  for (int64_t d = !channels ? x.dim() - n : x.dim() == n + 2 ? 1 : 0; d < x.dim(); ++d) {
    check(
        x.size(d) > 0, what,
        "(): Expected input's non-batch dimensions to have positive length, but input has a shape "
        "of ",
        to_string(x.sizes()));
  }
}

Dims output_sizes(const char* what, const Tensor& x, const Pool& p) {
  Dims out;
  auto n = static_cast<int64_t>(p.kernel.size());
  for (int64_t d = 0; d < n; ++d) {
    auto i = static_cast<size_t>(d);
    int64_t in = x.size(x.dim() - n + d), reach = checked_reach(p.kernel[i], p.dilation[i]);
    int64_t padded = checked_add(in, checked_mul(2, p.padding[i]));
    int64_t span = checked_add(padded - reach, p.ceil_mode ? p.stride[i] - 1 : 0);
    int64_t size = (span >= 0 ? span / p.stride[i] : -1) + 1;
    // The last window must start inside the input or its left padding.
    if (p.ceil_mode && (size - 1) * p.stride[i] >= in + p.padding[i]) --size;
    check(size >= 1, what, "(): Given input size: ", to_string(x.sizes()),
          ". Calculated output size is too small at "
          "spatial dimension ",
          d, " (", size, ") for kernel_size ", to_string(p.kernel));
    out.push_back(size);
  }
  return out;
}

PoolShape windows(const Tensor& x, const Dims& out, const Pool& p) {
  auto s = plane_shape(x, out, static_cast<int64_t>(out.size()));
  s.adaptive = false;
  for (size_t d = 0; d < out.size(); ++d) {
    s.kernel[d] = p.kernel[d];
    s.stride[d] = p.stride[d];
    s.padding[d] = p.padding[d];
    s.dilation[d] = p.dilation[d];
  }
  return s;
}

// Integers are pooled exactly, as int64.
template <class F> void visit_pooled(DType d, const char* what, F&& f) {
  if (d == DType::Int64) return f(Tag<int64_t>{});
  visit_floating(d, what, std::forward<F>(f));
}

// ---- max ----

// Values and indices of any pooling that selects one element per window.
template <class F>
TensorList pick(const char* what, const Tensor& self, const Dims& sizes, bool integers, F&& run) {
  const bool exact = integers && is_integral(self.dtype(), false);
  DType compute = exact ? DType::Int64 : compute_dtype(self.dtype(), what);
  Tensor y = empty(sizes, {compute, self.device()}),
         index = empty(sizes, {DType::Int64, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = prepared(self, compute);
    visit_pooled(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run(x.data_as<T>(), y.data_as<T>(), index.data_as<int64_t>());
    });
  }
  return {finished(y, self.dtype()), index};
}

template <int N>
TensorList max_pool(const Tensor& self, const Dims& kernel, const Dims& stride, const Dims& padding,
                    const Dims& dilation, bool ceil_mode) {
  static constexpr const char* names[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
  check_input(names[N - 1], self, N);
  Pool p = expanded(names[N - 1], N, kernel, stride, padding, dilation, ceil_mode);
  Dims out = output_sizes(names[N - 1], self, p);
  return pick(names[N - 1], self, with_spatial(self, out), true,
              [&]<class T>(const T* x, T* y, int64_t* index) {
                kernels<PoolKernels<T>>(self.device()).max_pool(windows(self, out, p), x, y, index);
              });
}

// Checks that `index` refers to elements of a plane of `sizes` and that `values` has the same
// shape.
void check_picked(const Tensor& index, DimsRef sizes, DimsRef values, int64_t n) {
  check(n >= 1 && n <= 3 && static_cast<int64_t>(sizes.size()) >= n &&
            sizes.size() == values.size() && same(index.sizes(), values),
        "max_pool_backward(): expected an index of shape ", to_string(values), " for ", n,
        " spatial dimensions of ", to_string(sizes), ", but got ", to_string(index.sizes()));
  auto outer = sizes.size() - static_cast<size_t>(n);
  check(same(sizes.first(outer), values.first(outer)), "max_pool_backward(): ", to_string(sizes),
        " and ", to_string(values), " do not have the same planes");
}
void check_elements(const Tensor& index, int64_t in) {
  if (auto bad = find_outside(index, 0, in))
    fail<IndexError>("max_pool_backward(): index ", *bad, " is out of range for a plane of ", in,
                     " elements");
}

Tensor scatter_pool(const Tensor& grad, const Tensor& index, const Dims& sizes, int64_t n) {
  check_picked(index, sizes, grad.sizes(), n);
  DType compute = compute_dtype(grad.dtype(), "max_pool_backward");
  const Options options{compute, grad.device()};
  Tensor gx = grad.numel() ? empty(sizes, options) : zeros(sizes, options);
  if (grad.numel() && !gx.is_meta()) {
    Tensor g = prepared(grad, compute), idx = prepared(index, DType::Int64);
    int64_t in = plane(sizes, static_cast<size_t>(n)),
            out = plane(grad.sizes(), static_cast<size_t>(n));
    visit_floating(compute, "max_pool_backward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (!kernels<PoolKernels<T>>(g.device())
               .scatter(grad.numel() / out, in, out, g.data_as<T>(), idx.data_as<int64_t>(),
                        gx.data_as<T>()))
        check_elements(idx, in);
    });
  }
  return finished(gx, grad.dtype());
}

Tensor gather_pool(const Tensor& self, const Tensor& index, int64_t n) {
  check_picked(index, self.sizes(), index.sizes(), n);
  Tensor y = empty(index.sizes(), self.options());
  if (y.numel() && !y.is_meta()) {
    const Tensor x = prepared(self, self.dtype()), idx = prepared(index, DType::Int64);
    const int64_t in = plane(self.sizes(), static_cast<size_t>(n)),
                  out = plane(index.sizes(), static_cast<size_t>(n));
    const Dims sizes{y.numel() / out, out}, strides{out, 1}, from{in, 1};
    if (!kernels<ScatterKernels>(y.device())
             .gather(y.data(), x.data(),
                     {sizes, strides, from, strides, 1, idx.data_as<int64_t>(), in}, y.dtype()))
      check_elements(idx, in);
  }
  return y;
}

template <int N> void pick_backward(Backward& b) {
  if (b.grad().defined()) b.set(0, op<"_scatter_pool">(b.grad(), b.out(1), b.sizes(0), N));
}
void scatter_backward(Backward& b) {
  b.set(0, op<"_gather_pool">(b.grad(), b.arg<Tensor>(1), b.arg<int64_t>(3)));
}
void gather_backward(Backward& b) {
  b.set(0, op<"_scatter_pool">(b.grad(), b.arg<Tensor>(1), b.sizes(0), b.arg<int64_t>(2)));
}

template <int N>
Tensor max_pool_values(const Tensor& self, const Dims& kernel, const Dims& stride,
                       const Dims& padding, const Dims& dilation, bool ceil_mode) {
  if constexpr (N == 1)
    return ops<"max_pool1d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
  else if constexpr (N == 2)
    return ops<"max_pool2d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
  else return ops<"max_pool3d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
}

// ---- average ----

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
  Tensor y = empty(with_spatial(self, out), {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = prepared(self, compute);
    visit_pooled(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(x.device())
          .avg_pool(windows(self, out, p), {count_include_pad, divisor.value_or(0)}, x.data_as<T>(),
                    y.data_as<T>());
    });
  }
  return finished(y, self.dtype());
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
  Tensor gx = zeros(sizes, {compute, grad.device()});
  if (grad.numel() && !gx.is_meta()) {
    Tensor g = prepared(grad, compute);
    Pool p = expanded("avg_pool_backward", n, kernel, stride, padding, Dims{1}, ceil_mode);
    Dims out(grad.sizes().last(static_cast<size_t>(n)));
    check(same(out, output_sizes("avg_pool_backward", gx, p)),
          "avg_pool_backward(): grad of shape ", to_string(grad.sizes()),
          " is not that of an average over ", to_string(sizes));
    visit_floating(compute, "avg_pool_backward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(g.device())
          .avg_pool_backward(windows(gx, out, p), {count_include_pad, divisor.value_or(0)},
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

// ---- adaptive ----

Dims adaptive_sizes(const char* what, const Tensor& self, const Dims& out, int64_t n,
                    bool channels = true) {
  check_input(what, self, n, channels);
  check(static_cast<int64_t>(out.size()) == n, what, "(): output_size must be ", n, " ints, got ",
        to_string(out));
  for (int64_t v : out) {
    check(v >= 0, what, "(): elements of output_size must be greater than or equal to 0, got ",
          to_string(out));
  }
  return with_spatial(self, out);
}

template <int N> Tensor adaptive_avg_pool(const Tensor& self, const Dims& out) {
  static constexpr const char* names[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                          "adaptive_avg_pool3d"};
  const char* what = names[N - 1];
  // As in PyTorch, no channels at all are refused in three dimensions alone.
  Dims sizes = adaptive_sizes(what, self, out, N, N == 3);
  DType compute = compute_dtype(self.dtype(), what);
  Tensor y = empty(sizes, {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = prepared(self, compute);
    visit_floating(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<PoolKernels<T>>(x.device())
          .avg_pool(plane_shape(self, out, N), {}, x.data_as<T>(), y.data_as<T>());
    });
  }
  return finished(y, self.dtype());
}

Tensor adaptive_avg_gradient(const Tensor& grad, const Dims& sizes, int64_t n) {
  check_gradient("adaptive_avg_pool_backward", grad, sizes, n);
  DType compute = compute_dtype(grad.dtype(), "adaptive_avg_pool_backward");
  Tensor gx = zeros(sizes, {compute, grad.device()});
  if (grad.numel() && !gx.is_meta()) {
    Tensor g = prepared(grad, compute);
    auto s = plane_shape(gx, grad.sizes().last(static_cast<size_t>(n)), n);
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

template <int N> TensorList adaptive_max_pool(const Tensor& self, const Dims& out) {
  static constexpr const char* names[] = {"adaptive_max_pool1d", "adaptive_max_pool2d",
                                          "adaptive_max_pool3d"};
  return pick(
      names[N - 1], self, adaptive_sizes(names[N - 1], self, out, N), false,
      [&]<class T>(const T* x, T* y, int64_t* index) {
        kernels<PoolKernels<T>>(self.device()).max_pool(plane_shape(self, out, N), x, y, index);
      });
}

// Only the one-dimensional ones are public in taeda itself.
template <int N> constexpr const char* home = N == 1 ? "" : "nn.functional";

// Of a batch (N, C, *spatial), with samples (N, C, spatial).
TensorList fractional_max_pool(const Tensor& self, const Tensor& samples, const Dims& kernel,
                               const Dims& out) {
  constexpr const char* what = "fractional_max_pool";
  const size_t n = kernel.size();
  check((n == 2 || n == 3) && out.size() == n && self.dim() == static_cast<int64_t>(n) + 2, what,
        "(): expected a batch of planes of 2 or 3 dimensions, got shape ", to_string(self.sizes()),
        ", kernel ", to_string(kernel), " and output ", to_string(out));
  check(same(samples.sizes(), Dims{self.size(0), self.size(1), static_cast<int64_t>(n)}) &&
            samples.is_meta() == self.is_meta(),
        what, "(): samples of shape ", to_string(samples.sizes()), " do not fit an input of shape ",
        to_string(self.sizes()));
  PoolShape s = plane_shape(self, out, static_cast<int64_t>(n));
  for (size_t d = 0; d < n; ++d) {
    s.kernel[d] = kernel[d];
    check(s.out[d] > 0 && s.kernel[d] > 0 && s.kernel[d] <= s.in[d] &&
              s.out[d] <= s.in[d] - s.kernel[d] + 1,
          what, "(): output ", to_string(out), " and kernel ", to_string(kernel),
          " do not fit an input of shape ", to_string(self.sizes()));
  }
  const DType compute = compute_dtype(self.dtype(), what);
  const Dims sizes = with_spatial(self, out);
  Tensor y = empty(sizes, {compute, self.device()}),
         index = empty(sizes, {DType::Int64, self.device()});
  if (y.is_meta() || y.numel() == 0) return {finished(y, self.dtype()), index};
  const Tensor x = prepared(self, compute), u = prepared(samples, compute);
  visit_floating(compute, what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    check(kernels<PoolKernels<T>>(x.device())
              .fractional_max_pool(s, x.data_as<T>(), u.data_as<T>(), y.data_as<T>(),
                                   index.data_as<int64_t>()),
          what, "(): the samples shift a window out of its plane; expected them within [0, 1]");
  });
  return {finished(y, self.dtype()), index};
}
void fractional_backward(Backward& b) {
  if (!b.grad().defined()) return;
  b.set(0, op<"_scatter_pool">(b.grad(), b.out(1), b.sizes(0),
                               static_cast<int64_t>(b.arg<Dims>(2).size())));
}

template <int N>
constexpr Traits kPick{.backward = pick_backward<N>,
                       .saves = saves_out(1),
                       .forms = kFunction,
                       .non_differentiable = 0b10,
                       .module = home<N>,
                       .format_of = 0b1};
template <int N>
constexpr Traits kAverage{.backward = avg_pool_backward<N>,
                          .forms = kFunction | kOut,
                          .module = home<N>,
                          .format_of = 0b1};
template <int N>
constexpr Traits kAdaptive{
    .backward = adaptive_avg_backward<N>, .forms = kFunction, .module = home<N>, .format_of = 0b1};
constexpr Traits kComposite{.forms = kFunction, .composite = true};

constexpr const char* kMaxDoc =
    "The largest element of each window of an input (N, C, *) or (C, *); NaN counts as largest. "
    "`stride` defaults to "
    "`kernel_size`.";
constexpr const char* kMaxIndexDoc =
    "Max pooling, with the flat position of each maximum in its plane.";
constexpr const char* kAvgDoc =
    "The mean of each window of an input (N, C, *) or (C, *).\n\n"
    "`stride` defaults to `kernel_size`; `padding` zeros are put at both ends, and count in the "
    "mean with `count_include_pad`; `ceil_mode` includes a last window that is not whole. Where "
    "there is a `divisor_override`, the sum of a window is divided by it instead of by its size.";

const Define pool_ops[] = {
    {"max_pool1d_with_indices(self: Tensor, kernel_size: int[1], stride: int[1] = [], padding: "
     "int[1] = 0, dilation: "
     "int[1] = 1, ceil_mode: bool = False) -> (Tensor, Tensor)",
     kMaxIndexDoc, kernel(max_pool<1>), kPick<1>.with(vmap::folded(1))},
    {"max_pool2d_with_indices(self: Tensor, kernel_size: int[2], stride: int[2] = [], padding: "
     "int[2] = 0, dilation: "
     "int[2] = 1, ceil_mode: bool = False) -> (Tensor, Tensor)",
     kMaxIndexDoc, kernel(max_pool<2>), kPick<2>.with(vmap::folded(2))},
    {"max_pool3d_with_indices(self: Tensor, kernel_size: int[3], stride: int[3] = [], padding: "
     "int[3] = 0, dilation: "
     "int[3] = 1, ceil_mode: bool = False) -> (Tensor, Tensor)",
     kMaxIndexDoc, kernel(max_pool<3>), kPick<3>.with(vmap::folded(3))},
    {"max_pool1d(self: Tensor, kernel_size: int[1], stride: int[1] = [], padding: int[1] = 0, "
     "dilation: int[1] = 1, "
     "ceil_mode: bool = False) -> Tensor",
     kMaxDoc, kernel(max_pool_values<1>), kComposite},
    {"max_pool2d(self: Tensor, kernel_size: int[2], stride: int[2] = [], padding: int[2] = 0, "
     "dilation: int[2] = 1, "
     "ceil_mode: bool = False) -> Tensor",
     kMaxDoc, kernel(max_pool_values<2>), kComposite},
    {"max_pool3d(self: Tensor, kernel_size: int[3], stride: int[3] = [], padding: int[3] = 0, "
     "dilation: int[3] = 1, "
     "ceil_mode: bool = False) -> Tensor",
     kMaxDoc, kernel(max_pool_values<3>), kComposite},
    {"_fractional_max_pool(self: Tensor, samples: Tensor, kernel_size: int[], output_size: int[]) "
     "-> (Tensor, Tensor)",
     "Largest elements, and their positions, of windows of `kernel_size` that begin at positions "
     "which "
     "`samples` (N, C, spatial) shift.",
     kernel(fractional_max_pool),
     {.backward = fractional_backward,
      .saves = saves_out(1),
      .forms = 0,
      .non_differentiable = 0b10}},
    {"_scatter_pool(grad: Tensor, index: Tensor, sizes: int[], spatial: int) -> Tensor",
     "Adds each element to the position in its plane given by `index`.",
     kernel(scatter_pool),
     {.backward = scatter_backward,
      .saves = saves_arg(1),
      .forms = 0,
      .format_of = 0b11,
      .vmap = vmap::folded(0)}},
    {"_gather_pool(self: Tensor, index: Tensor, spatial: int) -> Tensor",
     "Reads each plane at the positions given by `index`.",
     kernel(gather_pool),
     {.backward = gather_backward,
      .saves = saves_arg(1),
      .forms = 0,
      .format_of = 0b11,
      .vmap = vmap::folded(0)}},
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
     kAvgDoc, kernel(avg_pool<3>), kAverage<3>.with(Precision::Float32).with(vmap::folded(3))},
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
     kernel(adaptive_avg_pool<3>), kAdaptive<3>.with(Precision::Float32).with(vmap::folded(3))},
    {"_adaptive_avg_pool_backward(grad: Tensor, sizes: int[], spatial: int) -> Tensor",
     "Gradient of adaptive average pooling.",
     kernel(adaptive_avg_gradient),
     {.backward = adaptive_avg_second, .forms = 0, .format_of = 0b1, .vmap = vmap::folded(0)}},
    {"adaptive_max_pool1d(self: Tensor, output_size: int[1]) -> (Tensor, Tensor)",
     "Largest elements, and their positions, of windows chosen so that the output has "
     "`output_size`.",
     kernel(adaptive_max_pool<1>), kPick<1>.with(vmap::folded(1))},
    {"adaptive_max_pool2d(self: Tensor, output_size: int[2]) -> (Tensor, Tensor)",
     "Largest elements, and their positions, of windows chosen so that the output has "
     "`output_size`.",
     kernel(adaptive_max_pool<2>), kPick<2>.with(vmap::folded(2))},
    {"adaptive_max_pool3d(self: Tensor, output_size: int[3]) -> (Tensor, Tensor)",
     "Largest elements, and their positions, of windows chosen so that the output has "
     "`output_size`.",
     kernel(adaptive_max_pool<3>), kPick<3>.with(vmap::folded(3))},
};

}  // namespace
}  // namespace taeda
