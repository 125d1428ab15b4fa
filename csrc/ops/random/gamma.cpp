// Samples of gamma, Dirichlet and binomial distributions, with implicit reparameterization
// gradients (Figurnov, Mohamed, Mnih, NeurIPS 2018).
#include "kernels/gamma.h"

#include "autograd/backward.h"
#include "ops/core/half.h"
#include "ops/random/generator.h"

namespace taeda {
namespace {

using Gen = std::optional<Generator>;

void need_single_or_double(const char* what, const Tensor& t) {
  if (t.dtype() != DType::Float32 && t.dtype() != DType::Float64)
    unsupported_dtype(what, t.dtype());
}

// Runs fill(tag, engine) for `out` under the generator's lock.
template <class F> void draw(const char* what, const Tensor& out, const Gen& generator, F&& fill) {
  GeneratorImpl& g = resolve(generator, out.device());
  std::lock_guard lock(g.mutex);
  visit_floating(out.dtype(), what, [&](auto tag) { fill(tag, g.engine); });
}

Tensor standard_gamma(const Tensor& self, Gen generator) {
  need_single_or_double("_standard_gamma", self);
  Tensor alpha = prepared(self, self.dtype()), out = empty(alpha.sizes(), alpha.options());
  if (out.is_meta()) return out;
  draw("_standard_gamma", out, generator, [&](auto tag, Engine& engine) {
    using T = typename decltype(tag)::type;
    kernels<GammaKernels<T>>(out.device())
        .gamma(engine, out.data_as<T>(), alpha.data_as<T>(), out.numel());
  });
  return out;
}

void standard_gamma_backward(Backward& b) {
  b.set(0, b.grad() * op<"_standard_gamma_grad">(b.arg<Tensor>(0), b.out()));
}

Tensor sample_dirichlet(const Tensor& self, Gen generator) {
  need_single_or_double("_sample_dirichlet", self);
  check(self.dim() > 0, "_sample_dirichlet(): self must have a dimension");
  Tensor alpha = prepared(self, self.dtype()), out = empty(alpha.sizes(), alpha.options());
  if (out.is_meta() || out.numel() == 0) return out;
  draw("_sample_dirichlet", out, generator, [&](auto tag, Engine& engine) {
    using T = typename decltype(tag)::type;
    const int64_t k = out.size(-1);
    kernels<GammaKernels<T>>(out.device())
        .dirichlet(engine, out.data_as<T>(), alpha.data_as<T>(), out.numel() / k, k);
  });
  return out;
}

// Each component and the sum of the others are beta distributed; as one grows, the others shrink in
// proportion.
void sample_dirichlet_backward(Backward& b) {
  const Tensor alpha = b.arg<Tensor>(0), x = b.out(), g = b.grad();
  Tensor total = expand(sum(alpha, Dims{-1}, true), alpha.sizes());
  b.set(0, op<"_dirichlet_grad">(x, alpha, total) * (g - sum(x * g, Dims{-1}, true)));
}

// Calls f(kernels, operands, out), where the operands are broadcast and made contiguous.
template <class F>
Tensor elementwise(const char* what, std::initializer_list<const Tensor*> operands, F&& f) {
  const Tensor& first = **operands.begin();
  Dims sizes(first.sizes());
  for (const Tensor* t : operands) {
    need_single_or_double(what, *t);
    check(t->dtype() == first.dtype(), what, "(): Found dtype ", name(t->dtype()), " but expected ",
          name(first.dtype()));
    sizes = broadcast_sizes(sizes, t->sizes());
  }
  std::vector<Tensor> held;
  for (const Tensor* t : operands) held.push_back(prepared(expand(*t, sizes), first.dtype()));
  Tensor out = empty(sizes, first.options());
  if (out.is_meta()) return out;
  visit_floating(first.dtype(), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    f(kernels<GammaKernels<T>>(out.device()), held, out);
  });
  return out;
}

Tensor standard_gamma_grad(const Tensor& self, const Tensor& output) {
  return elementwise(
      "_standard_gamma_grad", {&self, &output},
      []<class T>(const GammaKernels<T>& k, const std::vector<Tensor>& in, const Tensor& out) {
        k.gamma_gradient(out.numel(), in[0].data_as<T>(), in[1].data_as<T>(), out.data_as<T>());
      });
}

Tensor dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  return elementwise(
      "_dirichlet_grad", {&x, &alpha, &total},
      []<class T>(const GammaKernels<T>& k, const std::vector<Tensor>& in, const Tensor& out) {
        k.dirichlet_gradient(out.numel(), in[0].data_as<T>(), in[1].data_as<T>(),
                             in[2].data_as<T>(), out.data_as<T>());
      });
}

Tensor binomial(const Tensor& count, const Tensor& prob, Gen generator) {
  check<ValueError>(is_floating(count.dtype()),
                    "binomial(): count must be of a floating-point dtype, got ",
                    name(count.dtype()));
  check(count.dtype() == prob.dtype(), "binomial(): Found dtype ", name(prob.dtype()),
        " for prob but expected ", name(count.dtype()));
  const DType compute = compute_dtype(count.dtype(), "binomial");
  const Dims sizes = broadcast_sizes(count.sizes(), prob.sizes());
  Tensor n = prepared(expand(count, sizes), compute), p = prepared(expand(prob, sizes), compute);
  Tensor out = empty(sizes, n.options());
  if (out.is_meta()) return finished(out, count.dtype());
  draw("binomial", out, generator, [&](auto tag, Engine& engine) {
    using T = typename decltype(tag)::type;
    kernels<GammaKernels<T>>(out.device())
        .binomial(engine, out.data_as<T>(), n.data_as<T>(), p.data_as<T>(), out.numel());
  });
  return finished(out, count.dtype());
}

void binomial_backward(Backward& b) {
  for (int i = 0; i < 2; ++i) b.set(i, zeros(b.sizes(i), b.options(i)));
}

const Define gamma_ops[] = {
    {"_standard_gamma(self: Tensor, generator: Generator? = None) -> Tensor",
     "A gamma deviate of scale 1 for each shape in `self`.",
     kernel(standard_gamma),
     {.backward = standard_gamma_backward, .saves = saves_arg(0) | saves_out()}},
    {"_standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor",
     "The derivative of a sample of `_standard_gamma` by its shape.",
     kernel(standard_gamma_grad),
     {.non_differentiable = 1, .vmap = vmap::elementwise}},
    {"_sample_dirichlet(self: Tensor, generator: Generator? = None) -> Tensor",
     "A point of the simplex for each row of concentrations.",
     kernel(sample_dirichlet),
     {.backward = sample_dirichlet_backward, .saves = saves_arg(0) | saves_out()}},
    {"_dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor",
     "The derivative of a component `x` of a Dirichlet sample by its concentration, over `1 - x`.",
     kernel(dirichlet_grad),
     {.non_differentiable = 1, .vmap = vmap::elementwise}},
    {"binomial(count: Tensor, prob: Tensor, generator: Generator? = None) -> Tensor",
     "Successes in `count` trials, each with probability `prob`, which broadcast.",
     kernel(binomial),
     {.backward = binomial_backward, .forms = kFunction}},
};

}  // namespace
}  // namespace taeda
