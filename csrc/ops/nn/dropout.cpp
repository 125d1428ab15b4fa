// Dropout and its relatives (Srivastava et al. 2014; Tompson et al. 2015; Klambauer et al. 2017).
#include <cmath>

#include "autograd/backward.h"
#include "kernels/random.h"
#include "ops/pointwise/copy.h"
#include "ops/random/fill.h"

namespace taeda {
namespace {

void check_p(const char* what, double p) {
  check(p >= 0 && p <= 1, what, ": dropout probability has to be between 0 and 1, but got ", p);
}

// Ones with probability 1 - p written to `mask`, which is dense; drawn in memory order.
Tensor keep_mask(Tensor mask, double p, const std::optional<Generator>& generator) {
  if (mask.is_meta()) return mask;
  GeneratorImpl& g = resolve(generator, mask.device());
  std::lock_guard lock(g.mutex);
  visit_real(mask.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<RandomKernels<T>>(mask.device())
        .bernoulli(g.engine, mask.data_as<T>(), mask.numel(), 1 - p);
  });
  return mask;
}

// The factor of kept elements. PyTorch computes 1 / (1 - p) in the tensor's dtype.
double kept_scale(double p, DType dtype) {
  if (p == 1) return 0;
  return dtype == DType::Float32 ? 1.0f / static_cast<float>(1 - p) : 1 / (1 - p);
}

// A tensor whose elements lie in memory as those of `t`, where they are a block of it; undefined
// where they are not.
Tensor alike(const Tensor& t) {
  Tensor r = empty_like(t);
  return same(r.strides(), t.strides()) ? r : Tensor();
}

// Half types are scaled in float where the device has no kernel for them.
DType scaled_in(const Tensor& t) {
  const auto has = [&]<class T>(T) {
    const Device d = t.device();
    return !t.is_meta() && has_kernels<DropoutKernels<T>>(d) &&
           kernels<DropoutKernels<T>>(d).scale_kept;
  };
  const bool as_it_is = t.dtype() == DType::Float16    ? has(Half())
                        : t.dtype() == DType::BFloat16 ? has(BFloat16())
                                                       : false;
  return as_it_is ? t.dtype() : compute_dtype(t.dtype(), "dropout");
}

// x where the mask is set, times `scale`, and x * 0 elsewhere.
Tensor scaled(const Tensor& self, const Tensor& mask, double scale) {
  check(mask.dtype() == DType::Bool && same(mask.sizes(), self.sizes()) &&
            mask.is_meta() == self.is_meta(),
        "dropout: expected a bool mask of shape ", to_string(self.sizes()), ", got ", mask.dtype(),
        " of shape ", to_string(mask.sizes()));
  const DType compute = scaled_in(self);
  const bool fit = compute == self.dtype() && same(mask.strides(), self.strides());
  Tensor y = fit ? alike(self) : Tensor();
  const bool as_they_are = y.defined();
  if (!as_they_are) y = empty(self.sizes(), {compute, self.device()});
  if (y.is_meta()) return finished(y, self.dtype());
  const Tensor x = as_they_are ? self : prepared(self, compute);
  const Tensor keep = as_they_are ? mask : prepared(mask, DType::Bool);
  visit_real(compute, "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>)
      kernels<DropoutKernels<T>>(y.device())
          .scale_kept(y.numel(), x.data_as<T>(), keep.data_as<bool>(), scale, y.data_as<T>());
  });
  return finished(y, self.dtype());
}

// The result and its mask by one kernel, in memory order. Empty where the device has none for the
// dtype, or the elements are no block of memory.
TensorList dropped(const Tensor& self, double p, const std::optional<Generator>& generator) {
  return visit_real(self.dtype(), "dropout", [&](auto tag) -> TensorList {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>) {
      if (!has_kernels<DropoutKernels<T>>(self.device())) return {};
      const auto& dropout = kernels<DropoutKernels<T>>(self.device()).dropout;
      Tensor y = dropout ? alike(self) : Tensor();
      if (!y.defined()) return {};
      Tensor keep = empty_strided(self.sizes(), self.strides(), {DType::Bool, self.device()});
      GeneratorImpl& g = resolve(generator, self.device());
      std::lock_guard lock(g.mutex);
      dropout(g.engine, y.numel(), 1 - p, self.data_as<T>(), kept_scale(p, self.dtype()),
              keep.data_as<bool>(), y.data_as<T>());
      return {y, keep};
    }
    return {};
  });
}

TensorList native_dropout(const Tensor& self, double p, std::optional<Generator> generator) {
  check_p("dropout", p);
  if (!is_floating(self.dtype())) {
    fail("result type ", default_dtype(), " can't be cast to the desired output type ",
         self.dtype());
  }
  if (p < 1 && !self.is_meta()) {
    if (TensorList drawn = dropped(self, p, generator); !drawn.empty()) return drawn;
  }
  Tensor mask = empty_like(self, DType::Bool);
  if (p == 1) fill_with(mask, false);
  else if (self.is_contiguous()) keep_mask(mask, p, generator);
  else if (!mask.is_meta()) copy_into(mask, keep_mask(empty_like(self), p, generator));
  return {scaled(self, mask, kept_scale(p, self.dtype())), mask};
}

void dropout_backward(Backward& b) {
  double p = b.arg<double>(1);
  if (!b.grad().defined()) return;
  b.set(0, op<"_dropout_backward">(b.grad(), b.out(1), kept_scale(p, b.grad().dtype())));
}
void dropout_second(Backward& b) {  // linear in its input
  b.set(0, op<"_dropout_backward">(b.grad(), b.arg<Tensor>(1), b.arg<double>(2)));
}

Tensor dropout(const Tensor& self, double p, bool train, std::optional<Generator> generator) {
  check_p("dropout", p);
  if (!train || p == 0 || self.numel() == 0) return self;
  return ops<"native_dropout">(self, p, generator)[0];
}

Tensor dropout_(const Tensor& self, double p, bool train, std::optional<Generator> generator) {
  check_p("dropout_", p);
  if (!train || p == 0 || self.numel() == 0) return self;
  Tensor scale = p < 1 ? keep_mask(empty_like(self), p, generator) * (1 / (1 - p))
                       : zeros(self.sizes(), self.options());
  return op<"mul_">(self, scale);
}

// Whole channels at a time: one draw for each (sample, channel).
Tensor feature_scale(const Tensor& self, double p, const std::optional<Generator>& generator) {
  check(self.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  Dims sizes(self.sizes().size(), 1);
  sizes[0] = self.size(0);
  sizes[1] = self.size(1);
  if (p == 1) return zeros(sizes, self.options());
  return keep_mask(empty(sizes, self.options()), p, generator) * (1 / (1 - p));
}

Tensor feature_dropout(const Tensor& self, double p, bool train,
                       std::optional<Generator> generator) {
  check_p("feature_dropout", p);
  if (!train || p == 0 || self.numel() == 0) return self;
  return self * feature_scale(self, p, generator);
}

// SELU's dropout: dropped elements become its negative limit, and an affine map restores mean and
// variance.
Tensor alpha_dropout_of(const Tensor& self, const Tensor& keep, double p) {
  constexpr double kLimit = 1.7580993408473766;  // scale * alpha of SELU
  double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  Tensor shift = (keep - Tensor(1.0)) * (kLimit * a) + kLimit * a * p;
  return self * (keep * a) + shift;
}

Tensor alpha_dropout(const Tensor& self, double p, bool train, std::optional<Generator> generator) {
  check_p("alpha_dropout", p);
  if (!train || p == 0 || self.numel() == 0) return self;
  if (p == 1) return self * zeros(self.sizes(), self.options());
  return alpha_dropout_of(self, keep_mask(empty_like(self), p, generator), p);
}

Tensor feature_alpha_dropout(const Tensor& self, double p, bool train,
                             std::optional<Generator> generator) {
  check_p("feature_alpha_dropout", p);
  if (!train || p == 0 || self.numel() == 0) return self;
  if (p == 1) return self * zeros(self.sizes(), self.options());
  return alpha_dropout_of(self, feature_scale(self, p, generator) * (1 - p), p);
}

constexpr Traits kFunctionOnly{.forms = kFunction, .composite = true};

const Define dropout_ops[] = {
    {"dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> Tensor",
     "In training, zeroes each element with probability `p` and scales the rest by 1 / (1 - p).",
     kernel(dropout), kFunctionOnly},
    {"dropout_(self!: Tensor, p: float, train: bool, *, generator: Generator? = None) -> Tensor",
     "dropout in place.", kernel(dropout_), kFunctionOnly.with(vmap::random())},
    {"native_dropout(self: Tensor, p: float, generator: Generator?) -> (Tensor, Tensor)",
     "dropout in training, with the mask of the elements it kept.",
     kernel(native_dropout),
     {.backward = dropout_backward,
      .saves = saves_out(1),
      .forms = 0,
      .non_differentiable = 0b10,
      .format_of = 0b1}},
    {"_dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor",
     "Gradient of native_dropout.",
     kernel(scaled),
     {.backward = dropout_second,
      .saves = saves_arg(1),
      .forms = 0,
      .format_of = 0b1,
      .vmap = vmap::leading(0)}},
    {"feature_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> "
     "Tensor",
     "dropout of whole channels of an input (N, C, *).", kernel(feature_dropout),
     kFunctionOnly.with(vmap::random(2))},
    {"alpha_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> "
     "Tensor",
     "dropout that keeps mean and variance of SELU activations.", kernel(alpha_dropout),
     kFunctionOnly.with(vmap::random())},
    {"feature_alpha_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) "
     "-> Tensor",
     "alpha_dropout of whole channels of an input (N, C, *).", kernel(feature_alpha_dropout),
     kFunctionOnly.with(vmap::random(2))},
};

}  // namespace
}  // namespace taeda
