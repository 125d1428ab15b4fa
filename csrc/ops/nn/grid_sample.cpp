// Samples images at the points of a grid (Jaderberg et al., 2015).
#include "kernels/grid_sample.h"

#include <limits>

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// Of `sizes`, the input's (N, C, *in).
GridSampler sampler(DimsRef sizes, const Tensor& grid, int64_t spatial, int64_t how,
                    int64_t outside, bool corners) {
  const auto rank = static_cast<int64_t>(sizes.size());
  check(spatial >= 2 && spatial <= 3 && rank == spatial + 2 && grid.dim() == rank &&
            grid.size(-1) == spatial,
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got "
        "input with sizes ",
        to_string(sizes), " and grid with sizes ", to_string(grid.sizes()));
  check(
      sizes[0] == grid.size(0),
      "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ",
      to_string(sizes), " and grid with sizes ", to_string(grid.sizes()));
  check<ValueError>(how >= 0 && how < 3 && outside >= 0 && outside < 3,
                    "grid_sampler(): interpolation_mode and padding_mode must be 0, 1 or 2, got ",
                    how, " and ", outside);
  check(how != static_cast<int64_t>(GridSampling::Cubic) || spatial == 2,
        "grid_sampler(): bicubic interpolation only supports 4D input");
  GridSampler s{static_cast<int>(spatial),
                {},
                sizes[0],
                sizes[1],
                1,
                static_cast<GridSampling>(how),
                static_cast<GridOutside>(outside),
                corners,
                false};
  int64_t elements = 1;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t n = sizes[static_cast<size_t>(d + 2)];
    check(n > 0,
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
          "sizes ",
          to_string(sizes), " with dimension ", d + 2, " being empty");
    check(n <= std::numeric_limits<int32_t>::max() / elements,
          "grid_sampler(): an image must have less than 2147483648 elements, got ",
          to_string(sizes));
    elements *= n;
    s.in[d] = n;
    s.points *= grid.size(d + 1);
  }
  return s;
}

Tensor reordered(const Tensor& x, const Dims& order) {
  Dims sizes, strides;
  for (int64_t d : order) {
    sizes.push_back(x.size(d));
    strides.push_back(x.stride(d));
  }
  return raw_view(x, sizes, strides, x.offset());
}
// How kernels take (N, C, *sizes), or its memory where they have no preference for planes: as
// (N, *sizes, C), and back.
Dims arranged(const GridSampler& s, DimsRef sizes) {
  Dims r{s.images};
  if (s.planes) r.push_back(s.channels);
  for (int64_t n : sizes) r.push_back(n);
  if (!s.planes) r.push_back(s.channels);
  return r;
}
Tensor arranged(const GridSampler& s, const Tensor& x, DType dtype) {
  if (s.planes) return prepared(x, dtype);
  Dims order{0};
  for (int64_t d = 2; d < x.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return prepared(reordered(x, order), dtype);
}
Tensor restored(const GridSampler& s, const Tensor& x, DType dtype) {
  if (s.planes) return finished(x, dtype);
  Dims order{0, x.dim() - 1};
  for (int64_t d = 1; d < x.dim() - 1; ++d) order.push_back(d);
  return prepared(reordered(x, order), dtype);
}

bool prefers_planes(const GridSampler& s, DType compute, Device device, bool gradient) {
  if (device.type == DeviceType::Meta) return false;
  if (compute == DType::Float64)
    return kernels<GridSampleKernels<double>>(device).prefers_planes(s, gradient);
  return kernels<GridSampleKernels<float>>(device).prefers_planes(s, gradient);
}

Tensor grid_sample(const Tensor& self, const Tensor& grid, int64_t spatial, int64_t how,
                   int64_t outside, bool corners) {
  auto s = sampler(self.sizes(), grid, spatial, how, outside, corners);
  const DType compute = compute_dtype(self.dtype(), "grid_sampler");
  check(grid.dtype() == self.dtype(),
        "grid_sampler(): expected input and grid to have same dtype, "
        "but input has ",
        self.dtype(), " and grid has ", grid.dtype());
  // What is to be copied anyway is better copied as the general kernel reads it.
  s.planes = prefers_planes(s, compute, self.device(), !self.is_contiguous());
  const Tensor y = empty(arranged(s, grid.sizes().subspan(1, static_cast<size_t>(spatial))),
                         {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    const Tensor x = arranged(s, self, compute), g = prepared(grid, compute);
    visit_floating(compute, "grid_sampler", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<GridSampleKernels<T>>(x.device())
          .sample(s, x.data_as<T>(), g.data_as<T>(), y.data_as<T>());
    });
  }
  return restored(s, y, self.dtype());
}

Tensor grid_sample_input(const Tensor& grad, const Tensor& grid, const Dims& sizes, int64_t spatial,
                         int64_t how, int64_t outside, bool corners) {
  auto s = sampler(sizes, grid, spatial, how, outside, corners);
  const DType compute = compute_dtype(grad.dtype(), "grid_sampler");
  s.planes = prefers_planes(s, compute, grad.device(), true);
  const Tensor gx = empty(arranged(s, DimsRef(sizes).subspan(2)), {compute, grad.device()});
  if (gx.numel() && !gx.is_meta()) {
    const Tensor gy = arranged(s, grad, compute), g = prepared(grid, compute);
    visit_floating(compute, "grid_sampler", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<GridSampleKernels<T>>(g.device())
          .input_gradient(s, gy.data_as<T>(), g.data_as<T>(), gx.data_as<T>());
    });
  }
  return restored(s, gx, grad.dtype());
}

Tensor grid_sample_grid(const Tensor& grad, const Tensor& self, const Tensor& grid, int64_t spatial,
                        int64_t how, int64_t outside, bool corners) {
  auto s = sampler(self.sizes(), grid, spatial, how, outside, corners);
  const DType compute = compute_dtype(grad.dtype(), "grid_sampler");
  if (!s.channels || s.how == GridSampling::Nearest) return raw_zeros(grid.sizes(), grid.options());
  s.planes = prefers_planes(s, compute, grad.device(), true);
  Tensor gg = empty(grid.sizes(), {compute, grad.device()});
  if (gg.numel() && !gg.is_meta()) {
    const Tensor gy = arranged(s, grad, compute), x = arranged(s, self, compute),
                 g = prepared(grid, compute);
    visit_floating(compute, "grid_sampler", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<GridSampleKernels<T>>(g.device())
          .grid_gradient(s, gy.data_as<T>(), x.data_as<T>(), g.data_as<T>(), gg.data_as<T>());
    });
  }
  return finished(gg, grid.dtype());
}

// ---- the derivative in ops ----

// One interpolation tap along one dimension: the pixel index (as a float), the weight, its
// derivative by the grid coordinate, and 1 if the index is inside the image, else 0.
struct Tap {
  Tensor pixel, weight, derivative, inside;
};

class GridReplay {
 public:
  explicit GridReplay(Backward& b)
      : b_(b),
        x_(b.arg<Tensor>(0)),
        grid_(b.arg<Tensor>(1)),
        s_(sampler(x_.sizes(), grid_, b.arg<int64_t>(2), b.arg<int64_t>(3), b.arg<int64_t>(4),
                   b.arg<bool>(5))) {}

  void run() {
    const Tensor gy = flat(b_.grad()), x = flat(x_);  // (N, C, points), (N, C, elements)
    for (int d = 0; d < s_.spatial; ++d) axes_.push_back(axis(d));
    gx_ = zeros(x.sizes(), x.options());
    grid_grads_.resize(axes_.size());
    combine(0, Tensor(), {}, gy, x);
    if (b_.needs(0)) b_.set(0, reshape(gx_, x_.sizes()));
    if (!b_.needs(1)) return;
    TensorList parts(grid_grads_.rbegin(), grid_grads_.rend());  // the fastest dimension first
    b_.set(1, reshape(op<"stack">(parts, -1), grid_.sizes()));
  }

 private:
  static Tensor flat(const Tensor& t) { return op<"flatten">(t, 2); }
  Tensor constant(const Tensor& like, double v) const { return ones_like(like) * v; }
  static Tensor held(const Tensor& at, int64_t n) {
    return op<"clamp">(at, Tensor(Scalar(0.0)), Tensor(Scalar(static_cast<double>(n - 1))));
  }

  // Applies the padding mode to the coordinate `at`; `speed` is its derivative by the grid.
  void bring_inside(int64_t n, Tensor& at, Tensor& speed) const {
    if (s_.outside == GridOutside::Zeros) return;
    if (s_.outside == GridOutside::Reflection) {
      const double low = s_.corners ? 0 : -0.5, span = static_cast<double>(s_.corners ? n - 1 : n);
      if (span == 0) {
        at = at * 0.0;
        speed = speed * 0.0;
        return;
      }
      const Tensor distance = at + -low, size = op<"abs">(distance);
      speed = where(op<"lt">(distance, Scalar(0.0)), -speed, speed);
      const Tensor periods = op<"floor">(size / span), rest = size - periods * span;
      const Tensor even = op<"eq">(periods - op<"floor">(periods / 2.0) * 2.0, Scalar(0.0));
      at = where(even, rest + low, (span + low) - rest);
      speed = where(even, speed, -speed);
    }
    const Tensor within =
        op<"gt">(at, Scalar(0.0)) & op<"lt">(at, Scalar(static_cast<double>(n - 1)));
    at = held(at, n);
    speed = where(within, speed, zeros_like(speed));
  }

  Tap tap(int64_t n, const Tensor& pixel, const Tensor& weight, const Tensor& derivative) const {
    const Tensor inside =
        op<"ge">(pixel, Scalar(0.0)) & op<"le">(pixel, Scalar(static_cast<double>(n - 1)));
    return {pixel, weight, derivative, to(inside, weight.dtype())};
  }

  // The pixel indices are constants: rounding has no gradient.
  std::vector<Tap> axis(int d) const {
    const int64_t n = s_.in[d];
    const Tensor g =
        reshape(op<"select">(grid_, -1, s_.spatial - 1 - d), Dims{s_.images, s_.points});
    const double count = static_cast<double>(n), pace = s_.corners ? (count - 1) / 2 : count / 2;
    Tensor at = (g + 1.0) * pace, speed = constant(g, pace);
    if (!s_.corners) at = at + -0.5;
    if (s_.how != GridSampling::Cubic) bring_inside(n, at, speed);
    const Tensor fixed = op<"detach">(at);
    if (s_.how == GridSampling::Nearest)
      return {tap(n, op<"round">(fixed), ones_like(at), zeros_like(at))};
    const Tensor low = op<"floor">(fixed);
    if (s_.how == GridSampling::Linear)
      return {tap(n, low, (low + 1.0) - at, -speed), tap(n, low + 1.0, at - low, speed)};
    std::vector<Tap> taps;
    for (int o = -1; o <= 2; ++o) {
      Tensor pixel = low + static_cast<double>(o), still = zeros_like(pixel);
      const Tensor offset = at - pixel, dist = op<"abs">(offset), square = dist * dist;
      const Tensor near = op<"le">(dist, Scalar(1.0)), far = op<"lt">(dist, Scalar(2.0));
      const Tensor none = zeros_like(dist);
      const Tensor weight =
          where(near, (dist * 1.25 + -2.25) * square + 1.0,
                where(far, ((dist + -5.0) * dist + 8.0) * dist * -0.75 + 3.0, none));
      const Tensor derivative =
          where(near, (dist * 3.75 + -4.5) * dist,
                where(far, ((dist * 3.0 + -10.0) * dist + 8.0) * -0.75, none)) *
          op<"sign">(offset) * speed;
      bring_inside(n, pixel, still);
      taps.push_back(tap(n, pixel, weight, derivative));
    }
    return taps;
  }

  // Recurses over one tap per dimension; `pixel` is the flat index of the taps chosen so far.
  void combine(size_t d, const Tensor& pixel, std::vector<const Tap*> chosen, const Tensor& gy,
               const Tensor& x) {
    if (d < axes_.size()) {
      for (const Tap& t : axes_[d]) {
        const Tensor index = to(held(t.pixel, s_.in[d]), DType::Int64);
        chosen.push_back(&t);
        combine(d + 1, pixel.defined() ? pixel * count_of(d) + index : index, chosen, gy, x);
        chosen.pop_back();
      }
      return;
    }
    const Tensor index = expand(unsqueeze(pixel, 1), gy.sizes());
    if (b_.needs(0)) {
      const Tensor w = product(chosen, chosen.size());
      gx_ = op<"scatter_add">(gx_, 2, index, gy * unsqueeze(w, 1));
    }
    if (!b_.needs(1)) return;
    const Tensor moved = sum(op<"gather">(x, 2, index) * gy, Dims{1});
    for (size_t k = 0; k < chosen.size(); ++k) {
      const Tensor part = moved * product(chosen, k);
      grid_grads_[k] = grid_grads_[k].defined() ? grid_grads_[k] + part : part;
    }
  }

  Tensor count_of(size_t d) const {
    return full(Dims{}, Scalar(s_.in[d]), {DType::Int64, x_.device()});
  }

  // The weight of all chosen taps, or its derivative by the coordinate of dimension `along`.
  static Tensor product(const std::vector<const Tap*>& chosen, size_t along) {
    Tensor p;
    for (size_t k = 0; k < chosen.size(); ++k) {
      const Tensor factor =
          (k == along ? chosen[k]->derivative : chosen[k]->weight) * chosen[k]->inside;
      p = p.defined() ? p * factor : factor;
    }
    return p;
  }

  Backward& b_;
  Tensor x_, grid_;
  GridSampler s_;
  std::vector<std::vector<Tap>> axes_;
  Tensor gx_;
  std::vector<Tensor> grid_grads_;
};

void grid_sample_backward(Backward& b) {
  if (derivative_in_ops()) return GridReplay(b).run();
  const Tensor grid = b.arg<Tensor>(1);
  const auto spatial = b.arg<int64_t>(2), how = b.arg<int64_t>(3), outside = b.arg<int64_t>(4);
  const bool corners = b.arg<bool>(5);
  if (b.needs(0)) {
    b.set(0, op<"_grid_sample_input">(b.grad(), grid, b.sizes(0), spatial, how, outside, corners));
  }
  if (b.needs(1)) {
    b.set(1, op<"_grid_sample_grid">(b.grad(), b.arg<Tensor>(0), grid, spatial, how, outside,
                                     corners));
  }
}

const Define kGridSampleOps[] = {
    {"_grid_sample(self: Tensor, grid: Tensor, spatial: int, how: int, outside: int, corners: "
     "bool) -> Tensor",
     "The values of `self` (N, C, *in) at the points of `grid` (N, *out, spatial). `how`: 0 "
     "linear, "
     "1 nearest, 2 cubic. `outside`: 0 zeros, 1 border, 2 reflection.",
     kernel(grid_sample),
     {.backward = grid_sample_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kFunction,
      .autocast = kWidestOnCuda,
      .vmap = vmap::folded(0)}},
    {"_grid_sample_input(grad: Tensor, grid: Tensor, sizes: int[], spatial: int, how: int, "
     "outside: int, corners: bool) -> Tensor",
     "The gradient of `_grid_sample` for a `self` of `sizes`.",
     kernel(grid_sample_input),
     {.forms = kFunction, .vmap = vmap::folded(0)}},
    {"_grid_sample_grid(grad: Tensor, self: Tensor, grid: Tensor, spatial: int, how: int, "
     "outside: int, corners: bool) -> Tensor",
     "The gradient of `_grid_sample` for its grid.",
     kernel(grid_sample_grid),
     {.forms = kFunction, .vmap = vmap::folded(0)}},
};

}  // namespace
}  // namespace taeda
