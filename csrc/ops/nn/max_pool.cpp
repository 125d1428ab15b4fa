// Max pooling, adaptive and fractional too, and what adds up or reads at the positions it chose.
#include "kernels/scatter.h"
#include "ops/index/util.h"
#include "ops/nn/pool.h"

namespace taeda {
namespace {

using namespace pooling;

int64_t plane(DimsRef sizes, size_t n) { return numel_of(sizes.last(n)); }

// Values and indices of any pooling that selects one element per window.
template <class F>
TensorList pick(const char* what, const Tensor& self, const Dims& sizes, bool integers,
                ChannelLayout layout, F&& run) {
  const bool exact = integers && is_integral(self.dtype(), false);
  DType compute = exact ? DType::Int64 : compute_dtype(self.dtype(), what);
  const Dims made = layout.moved(sizes);
  Tensor y = empty(made, {compute, self.device()}),
         index = empty(made, {DType::Int64, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = layout.operand(self, compute);
    visit_pooled(compute, what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run(x.data_as<T>(), y.data_as<T>(), index.data_as<int64_t>());
    });
  }
  return {layout.result(y, self.dtype()), layout.result(index, DType::Int64)};
}

template <int N>
TensorList max_pool(const Tensor& self, const Dims& kernel, const Dims& stride, const Dims& padding,
                    const Dims& dilation, bool ceil_mode) {
  static constexpr const char* names[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
  check_input(names[N - 1], self, N);
  Pool p = expanded(names[N - 1], N, kernel, stride, padding, dilation, ceil_mode);
  Dims out = output_sizes(names[N - 1], self, p);
  const ChannelLayout layout = layout_of(self, N);
  return pick(
      names[N - 1], self, with_spatial(self, out), true, layout,
      [&]<class T>(const T* x, T* y, int64_t* index) {
        kernels<PoolKernels<T>>(self.device()).max_pool(windows(self, out, p, layout), x, y, index);
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
  const ChannelLayout layout = layout_of(index, n);
  const Dims made = layout.moved(sizes);
  Tensor gx = grad.numel() ? empty(made, options) : zeros(made, options);
  if (grad.numel() && !gx.is_meta()) {
    const int64_t in = plane(sizes, static_cast<size_t>(n)),
                  out = plane(grad.sizes(), static_cast<size_t>(n));
    const int64_t channels = layout.last ? sizes[1] : 1;
    const Tensor g = layout.operand(grad, compute),
                 idx = kept_inside(layout.operand(index, DType::Int64), 0, in);
    visit_floating(compute, "max_pool_backward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (!kernels<PoolKernels<T>>(g.device())
               .scatter(grad.numel() / out / channels, in, out, channels, g.data_as<T>(),
                        idx.data_as<int64_t>(), gx.data_as<T>()))
        check_elements(idx, in);
    });
  }
  return layout.result(gx, grad.dtype());
}

Tensor gather_pool(const Tensor& self, const Tensor& index, int64_t n) {
  check_picked(index, self.sizes(), index.sizes(), n);
  Tensor y = empty(index.sizes(), self.options());
  if (y.numel() && !y.is_meta()) {
    const int64_t in = plane(self.sizes(), static_cast<size_t>(n)),
                  out = plane(index.sizes(), static_cast<size_t>(n));
    const Tensor x = prepared(self, self.dtype()),
                 idx = kept_inside(prepared(index, DType::Int64), 0, in);
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

// Of (N, C, D, H, W) in channels_last_3d, without gradients, by the kernels of two dimensions: over
// H and W with a batch of N * D, then over D with H, W and C as channels.
Tensor max_pool_channels_last_3d(const Tensor& self, const Pool& p, DimsRef out) {
  const int64_t n = self.size(0), c = self.size(1), d = self.size(2);
  const auto pool_2d = [&](const Tensor& x, auto&& part) {  // x (N, H, W, C)
    return permute(
        op<"max_pool2d">(permute(x, Dims{0, 3, 1, 2}), part(p.kernel, 1), part(p.stride, 1),
                         part(p.padding, 0), part(p.dilation, 1), p.ceil_mode),
        Dims{0, 2, 3, 1});
  };
  const Tensor x = permute(self, Dims{0, 2, 3, 4, 1});
  const Tensor planes = pool_2d(reshape(x, Dims{n * d, x.size(2), x.size(3), c}),
                                [](const Dims& a, int64_t) { return Dims{a[1], a[2]}; });
  const Tensor y = pool_2d(reshape(planes, Dims{n, d, 1, out[1] * out[2] * c}),
                           [](const Dims& a, int64_t along_w) { return Dims{a[0], along_w}; });
  return permute(reshape(y, Dims{n, out[0], out[1], out[2], c}), Dims{0, 4, 1, 2, 3});
}

template <int N>
Tensor max_pool_values(const Tensor& self, const Dims& kernel, const Dims& stride,
                       const Dims& padding, const Dims& dilation, bool ceil_mode) {
  if constexpr (N == 1)
    return ops<"max_pool1d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
  else if constexpr (N == 2)
    return ops<"max_pool2d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
  else {
    if (self.dim() == 5 && self.numel() && is_channels_last(self) &&
        !(modes.grad && (self.flags() & kRequiresGrad))) {
      check_input("max_pool3d", self, N);
      const Pool p = expanded("max_pool3d", N, kernel, stride, padding, dilation, ceil_mode);
      return max_pool_channels_last_3d(self, p, output_sizes("max_pool3d", self, p));
    }
    return ops<"max_pool3d_with_indices">(self, kernel, stride, padding, dilation, ceil_mode)[0];
  }
}

template <int N> TensorList adaptive_max_pool(const Tensor& self, const Dims& out) {
  static constexpr const char* names[] = {"adaptive_max_pool1d", "adaptive_max_pool2d",
                                          "adaptive_max_pool3d"};
  const ChannelLayout layout = layout_of(self, N);
  return pick(names[N - 1], self, adaptive_sizes(names[N - 1], self, out, N), false, layout,
              [&]<class T>(const T* x, T* y, int64_t* index) {
                kernels<PoolKernels<T>>(self.device())
                    .max_pool(plane_shape(self, out, N, layout), x, y, index);
              });
}

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
  PoolShape s = plane_shape(self, out, static_cast<int64_t>(n), {});
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

constexpr const char* kMaxDoc =
    "The largest element of each window of an input (N, C, *) or (C, *); NaN counts as largest. "
    "`stride` defaults to "
    "`kernel_size`.";
constexpr const char* kMaxIndexDoc =
    "Max pooling, with the flat position of each maximum in its plane.";

const Define max_pool_ops[] = {
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
