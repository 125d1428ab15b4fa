// Dropout and its relatives (Srivastava et al. 2014; Tompson et al. 2015; Klambauer et al. 2017).
#include <cmath>

#include "autograd/backward.h"
#include "kernels/cpu/random.h"
#include "ops/generator.h"
#include "ops/half.h"

namespace taeda {
namespace {

void check_p(const char* what, double p) {
  check(p >= 0 && p <= 1, what, ": dropout probability has to be between 0 and 1, but got ", p);
}

// Ones with probability 1 - p in the memory of `mask`, which is dense; drawn in the order in which
// it lies there.
Tensor keep_mask(Tensor mask, double p, const std::optional<Generator>& generator) {
  if (mask.is_meta()) return mask;
  GeneratorImpl& g = resolve(generator);
  std::lock_guard lock(g.mutex);
  visit_real(mask.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    cpu::fill_bernoulli<T>(g.engine, mask.data_as<T>(), mask.numel(), 1 - p);
  });
  return mask;
}

TensorList native_dropout(const Tensor& self, double p, std::optional<Generator> generator) {
  check_p("dropout", p);
  if (!is_floating(self.dtype())) {
    fail("result type ", default_dtype(), " can't be cast to the desired output type ",
         self.dtype());
  }
  DType compute = compute_dtype(self.dtype(), "dropout");
  Tensor x = prepared(self, compute), y = empty(self.sizes(), {compute, self.device()});
  Tensor mask = empty(self.sizes(), {DType::Bool, self.device()});
  if (y.is_meta()) return {finished(y, self.dtype()), mask};
  Tensor keep = prepared(
      p < 1 ? keep_mask(empty_like(self), p, generator) : zeros(self.sizes(), self.options()),
      compute);
  visit_floating(compute, "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T scale = p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
    const T *in = x.data_as<T>(), *k = keep.data_as<T>();
    T* out = y.data_as<T>();
    bool* m = mask.data_as<bool>();
    for (int64_t i = 0; i < y.numel(); ++i) {
      m[i] = k[i] != 0;
      out[i] = in[i] * (k[i] * scale);
    }
  });
  return {finished(y, self.dtype()), mask};
}

void dropout_backward(Backward& b) {
  double p = b.arg<double>(1);
  Tensor g = b.grad();
  if (!g.defined()) return;
  b.set(0, g * (to(b.out(1), g.dtype()) * (p < 1 ? 1 / (1 - p) : 0.0)));
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

constexpr Traits kComposite{.forms = kFunction, .composite = true};

const Define dropout_ops[] = {
    {"dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> Tensor",
     "In training, zeroes each element with probability `p` and scales the rest by 1 / (1 - p).",
     kernel(dropout), kComposite},
    {"dropout_(self!: Tensor, p: float, train: bool, *, generator: Generator? = None) -> Tensor",
     "dropout in place.", kernel(dropout_), kComposite},
    {"native_dropout(self: Tensor, p: float, generator: Generator?) -> (Tensor, Tensor)",
     "dropout in training, with the mask of the elements it kept.",
     kernel(native_dropout),
     {.backward = dropout_backward, .saves = saves_out(1), .forms = 0, .non_differentiable = 0b10}},
    {"feature_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> "
     "Tensor",
     "dropout of whole channels of an input (N, C, *).", kernel(feature_dropout), kComposite},
    {"alpha_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) -> "
     "Tensor",
     "dropout that keeps mean and variance of SELU activations.", kernel(alpha_dropout),
     kComposite},
    {"feature_alpha_dropout(self: Tensor, p: float, train: bool, *, generator: Generator? = None) "
     "-> Tensor",
     "alpha_dropout of whole channels of an input (N, C, *).", kernel(feature_alpha_dropout),
     kComposite},
};

}  // namespace
}  // namespace taeda
