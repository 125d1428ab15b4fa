// Activations: those of functors alone, and those that choose a functor or its numbers by their
// arguments.
#include "ops/pointwise/rows.h"

namespace taeda {
namespace {

using namespace portable;

const bool registered = register_ops(ActivationOps{});

const Tensor& tensor(const Call& c, size_t i) { return std::get<Tensor>(c.args[i]); }

bool gelu_by_tanh(const std::string& approximate) {
  check(approximate == "none" || approximate == "tanh",
        "approximate argument must be either none or tanh.");
  return approximate == "tanh";
}
Value gelu_kernel(Call& c) {
  if (gelu_by_tanh(std::get<std::string>(c.args[1]))) return run_pointwise(row<GeluTanh>(), c, {0});
  return run_pointwise(row<Gelu>(), c, {0});
}
void gelu_backward(Backward& b) {
  if (gelu_by_tanh(b.arg<std::string>(1))) differentiate<GeluTanh>(b, {0});
  else differentiate<Gelu>(b, {0});
}

struct EluParameters {
  Scalar a, b, c;  // of the functor EluFamily
};
EluParameters elu_parameters(Scalar alpha) { return {1.0, alpha, 1.0}; }
EluParameters celu_parameters(Scalar alpha) {
  check(alpha.to_double() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return {1.0, alpha, 1.0 / alpha.to_double()};
}
// Klambauer et al. 2017: with these constants mean 0 and variance 1 are a fixed point.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717,
                 kSeluScale = 1.0507009873554804934193349852946;
EluParameters selu_parameters() { return {kSeluScale, kSeluScale * kSeluAlpha, 1.0}; }

Value run_elu(Call& c, const EluParameters& p) {
  Operands operands;
  operands.add(tensor(c, 0));
  operands.add_cast(p.a);
  operands.add_cast(p.b);
  operands.add_cast(p.c);
  return run_pointwise(row<EluFamily>(), operands, c);
}
void run_elu_backward(Backward& b, const EluParameters& p) {
  differentiate<EluFamily>(b, {0, p.a, p.b, p.c});
}
Value elu_kernel(Call& c) { return run_elu(c, elu_parameters(std::get<Scalar>(c.args[1]))); }
void elu_backward(Backward& b) { run_elu_backward(b, elu_parameters(b.arg<Scalar>(1))); }
Value celu_kernel(Call& c) { return run_elu(c, celu_parameters(std::get<Scalar>(c.args[1]))); }
void celu_backward(Backward& b) { run_elu_backward(b, celu_parameters(b.arg<Scalar>(1))); }
Value selu_kernel(Call& c) { return run_elu(c, selu_parameters()); }
void selu_backward(Backward& b) { run_elu_backward(b, selu_parameters()); }

// The weight holds one number, or one for each channel (dimension 1).
Tensor prelu(const Tensor& self, const Tensor& weight) {
  check(weight.dim() <= 1,
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (weight.numel() == 1) return op<"_prelu">(self, reshape(weight, {}));
  check(self.dim() > 0, "Not allow zero-dim input tensor.");
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  check(channels == weight.numel(),
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
        weight.numel(), " and channel size = ", channels, ".");
  Dims shape(static_cast<size_t>(self.dim()), 1);
  shape[1] = channels;
  return op<"_prelu">(self, reshape(weight, shape));
}
Value prelu_kernel(Call& c) { return run_pointwise(row<Prelu>(), c, {0, 1}); }

const Define kActivationOps[] = {
    {"gelu(self: Tensor, *, approximate: str = 'none') -> Tensor",
     "x times the normal distribution function of x (Hendrycks and Gimpel 2016); 'tanh' computes "
     "an approximation.",
     raw_kernel(gelu_kernel, true),
     {.backward = gelu_backward,
      .saves = saves_arg(0),
      .forms = kFunction | kOut,
      .module = kNnFunctional,
      .elementwise = true,
      .out_dtype = OutDtype::Exact}},
    {"elu(self: Tensor, alpha: Scalar = 1.0) -> Tensor",
     "x where it is positive, `alpha * (exp(x) - 1)` elsewhere (Clevert et al. 2015).",
     raw_kernel(elu_kernel, true),
     {.backward = elu_backward,
      .saves = saves_arg(0),
      .forms = kFunction | kInplace,
      .module = kNnFunctional,
      .elementwise = true}},
    {"celu(self: Tensor, alpha: Scalar = 1.0) -> Tensor",
     "x where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere (Barron 2017).",
     raw_kernel(celu_kernel, true),
     {.backward = celu_backward,
      .saves = saves_arg(0),
      .forms = kFunction | kInplace | kInplaceFunction,
      .elementwise = true}},
    {"selu(self: Tensor) -> Tensor",
     "`elu` scaled so that activations keep mean 0 and variance 1 (Klambauer et al. 2017).",
     raw_kernel(selu_kernel, true),
     {.backward = selu_backward,
      .saves = saves_arg(0),
      .forms = kFunction | kInplace | kInplaceFunction,
      .elementwise = true}},
    {"prelu(self: Tensor, weight: Tensor) -> Tensor",
     "x where it is positive, `weight * x` elsewhere: one weight for all, or one for each channel "
     "(He et al. 2015).",
     kernel(prelu),
     {.composite = true, .autocast = Precision::Lower}},
    {"_prelu(self: Tensor, weight: Tensor) -> Tensor",
     "prelu with a weight that broadcasts.",
     raw_kernel(prelu_kernel, true),
     {.backward = pointwise_backward<Prelu>,
      .saves = saves_arg(0) | saves_arg(1),
      .elementwise = true}},
};

}  // namespace
}  // namespace taeda
