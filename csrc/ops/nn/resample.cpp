// Resizing by interpolation, for nn.functional.interpolate.
#include "kernels/resample.h"

#include <algorithm>
#include <limits>

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/pointwise/copy.h"

namespace taeda {
namespace {

ResampleShape resizing(const Dims& in, const Dims& out, const std::vector<double>& step,
                       int64_t how, bool corners) {
  check(!out.empty() && out.size() <= 3 && in.size() == out.size() && step.size() == out.size(),
        "interpolate(): expected a size and a step for each of 1 to 3 spatial dimensions, got ",
        to_string(out), " for ", to_string(in));
  check<ValueError>(how >= 0 && how <= static_cast<int64_t>(Resampling::CubicSmooth),
                    "interpolate(): there is no mode ", how);
  ResampleShape s{1,  1,  static_cast<int>(out.size()), {},
                  {}, {}, static_cast<Resampling>(how), corners};
  for (size_t d = 0; d < out.size(); ++d) {
    check(in[d] > 0 && out[d] > 0 && std::max(in[d], out[d]) <= std::numeric_limits<int32_t>::max(),
          "interpolate(): input and output sizes must be from 1 to 2147483647, got ", to_string(in),
          " to become ", to_string(out));
    check<ValueError>(step[d] >= 0 && step[d] <= std::numeric_limits<int32_t>::max(),
                      "interpolate(): neighbours cannot be ", step[d], " apart in the input");
    s.in[d] = in[d];
    s.out[d] = out[d];
    s.step[d] = step[d];
  }
  return s;
}

// Resizes, or applies the transposed map (the gradient) from the output's sizes to the input's.
Tensor run(const Tensor& self, ResampleShape r, bool transposed) {
  const bool nearest = r.how == Resampling::Nearest || r.how == Resampling::NearestExact;
  const bool bytes = self.dtype() == DType::UInt8 && nearest && !transposed;
  const DType compute = bytes ? DType::Float32 : compute_dtype(self.dtype(), "interpolate");
  const DimsRef to(transposed ? r.in : r.out, static_cast<size_t>(r.spatial));
  const size_t lead = self.sizes().size() - to.size();
  Dims sizes(self.sizes().first(lead));
  for (int64_t n : to) sizes.push_back(n);
  const bool channels_last = lead == 2 && to.size() == 2 && !self.is_contiguous() &&
                             self.is_contiguous(MemoryFormat::ChannelsLast);
  Tensor y = channels_last
                 ? empty_strided(sizes, channels_last_strides(sizes), {compute, self.device()})
                 : empty(sizes, {compute, self.device()});
  if (y.numel() && !y.is_meta()) {
    Tensor x = self;
    if (!channels_last) {
      x = prepared(self, compute);
    } else if (self.dtype() != compute) {
      x = empty_in(self, compute, self.device(), MemoryFormat::Preserve);
      copy_into(x, self);
    }
    r.outer = numel_of(DimsRef(sizes).first(channels_last ? 1 : lead));
    if (channels_last) r.inner = sizes[1];
    visit_floating(compute, "interpolate", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto& f = kernels<ResampleKernels<T>>(x.device());
      (transposed ? f.backward : f.resample)(r, x.data_as<T>(), y.data_as<T>());
    });
  }
  if (y.dtype() == self.dtype()) return y;
  Tensor result = empty_in(y, self.dtype(), y.device(), MemoryFormat::Preserve);
  copy_into(result, y);
  return result;
}

Dims last(DimsRef sizes, size_t n) {
  check(sizes.size() >= n, "interpolate(): expected ", n, " spatial dimensions, got a tensor of ",
        to_string(sizes));
  return Dims(sizes.last(n));
}

Tensor resample(const Tensor& self, const Dims& size, const std::vector<double>& step, int64_t how,
                bool corners) {
  return run(self, resizing(last(self.sizes(), size.size()), size, step, how, corners), false);
}
Tensor resample_gradient(const Tensor& grad, const Dims& size, const std::vector<double>& step,
                         int64_t how, bool corners) {
  return run(grad, resizing(size, last(grad.sizes(), size.size()), step, how, corners), true);
}

// Both are linear: each is the other's derivative.
template <bool Back> void resample_backward(Backward& b) {
  const Dims size = last(b.sizes(0), b.arg<Dims>(1).size());
  const auto step = b.arg<std::vector<double>>(2);
  const auto how = b.arg<int64_t>(3);
  const bool corners = b.arg<bool>(4);
  if constexpr (Back) b.set(0, op<"_resample">(b.grad(), size, step, how, corners));
  else b.set(0, op<"_resample_backward">(b.grad(), size, step, how, corners));
}

const Define kResampleOps[] = {
    {"_resample(self: Tensor, size: int[], step: float[], how: int, corners: bool) -> Tensor",
     "The last dimensions resized. `step`: how far apart neighbours of the result lie in `self`. "
     "`how`: 0 nearest, 1 nearest-exact, 2 linear, 3 cubic, 4 and 5 these two with antialiasing.",
     kernel(resample),
     {.backward = resample_backward<false>,
      .forms = kFunction,
      .format_of = 0b1,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::direct}},
    {"_resample_backward(grad: Tensor, size: int[], step: float[], how: int, corners: bool) -> "
     "Tensor",
     "The gradient of `_resample` for an input whose last dimensions have `size`.",
     kernel(resample_gradient),
     {.backward = resample_backward<true>,
      .forms = kFunction,
      .format_of = 0b1,
      .vmap = vmap::direct}},
};

}  // namespace
}  // namespace taeda
