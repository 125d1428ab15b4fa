// Random fills of tensors. For one seed they hold the numbers that PyTorch's CPU generator gives
// (docs/random-streams.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/core/shape_util.h"
#include "ops/random/fill.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

// Numbers are drawn in memory order: the same tensor (or one expanded to its shape) with its
// dimensions in the order of decreasing strides of `self`.
Tensor in_memory_order(const Tensor& t, const Tensor& self) {
  std::vector<size_t> order(self.sizes().size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto step = [&](size_t d) { return self.sizes()[d] == 1 ? INT64_MAX : self.strides()[d]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return step(a) > step(b); });
  Dims all = broadcast_strides(t, self.sizes()), sizes, strides;
  for (size_t d : order) {
    sizes.push_back(self.sizes()[d]);
    strides.push_back(all[d]);
  }
  return from_storage(t.storage(), sizes, strides, t.offset(), t.dtype());
}

// Runs fill(engine, pointer, n) on contiguous memory of self's dtype and copies the values to self
// if it is not contiguous.
template <class F>
Tensor fill_in_place(const char* what, const Tensor& self, const Gen& generator, F&& fill) {
  if (self.is_meta() || self.numel() == 0) return self;
  check_no_internal_overlap(self);
  Tensor to = self.is_contiguous() ? self : in_memory_order(self, self);
  Tensor target = to.is_contiguous() ? to : empty(to.sizes(), to.options());
  GeneratorImpl& g = resolve(generator, self.device());
  use_device(self.device());
  {
    std::lock_guard lock(g.mutex);
    visit_real(self.dtype(), what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      fill(tag, g.engine, target.data_as<T>());
    });
  }
  if (!target.is(to)) copy_into(to, target);
  return self;
}

}  // namespace

Tensor uniform_(const Tensor& self, double from, double to, Gen generator) {
  if (is_complex(self.dtype())) {
    if (!self.is_meta()) uniform_(raw_view_as_real(self), from, to, generator);
    return self;
  }
  need_floating("uniform_", self);
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
        " > to=", to);
  return fill_in_place("uniform_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>)
      kernels<ContinuousKernels<T>>(self.device()).uniform(e, p, self.numel(), from, to);
  });
}

Tensor normal_(const Tensor& self, double mean, double std, Gen generator) {
  check(std >= 0, "normal expects std >= 0.0, but found std ", std);
  if (is_complex(self.dtype())) {
    // Real and imaginary parts share the variance, and each has the mean.
    if (!self.is_meta()) normal_(raw_view_as_real(self), mean, std / std::sqrt(2.0), generator);
    return self;
  }
  need_floating("normal_", self);
  return fill_in_place("normal_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>) {
      if (self.is_contiguous())
        kernels<ContinuousKernels<T>>(self.device()).normal(e, p, self.numel(), mean, std);
      else
        kernels<ContinuousKernels<T>>(self.device()).normal_serial(e, p, self.numel(), mean, std);
    }
  });
}

Tensor exponential_(const Tensor& self, double lambd, Gen generator) {
  need_floating("exponential_", self);
  check(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  return fill_in_place("exponential_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>)
      kernels<ContinuousKernels<T>>(self.device()).exponential(e, p, self.numel(), lambd);
  });
}

namespace {

Tensor cauchy_(const Tensor& self, double median, double sigma, Gen generator) {
  need_floating("cauchy_", self);
  check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return fill_in_place("cauchy_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>)
      kernels<ContinuousKernels<T>>(self.device()).cauchy(e, p, self.numel(), median, sigma);
  });
}

Tensor log_normal_(const Tensor& self, double mean, double std, Gen generator) {
  need_floating("log_normal_", self);
  check(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  return fill_in_place("log_normal_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    if constexpr (floating<T>)
      kernels<ContinuousKernels<T>>(self.device()).log_normal(e, p, self.numel(), mean, std);
  });
}

Tensor geometric_(const Tensor& self, double p, Gen generator) {
  check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return fill_in_place("geometric_", self, generator, [&](auto tag, Engine& e, auto* out) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) unsupported_dtype("geometric_", DType::Bool);
    else kernels<RandomKernels<T>>(self.device()).geometric(e, out, self.numel(), p);
  });
}

Tensor bernoulli_scalar_(const Tensor& self, double p, Gen generator) {
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_in_place("bernoulli_", self, generator, [&](auto tag, Engine& e, auto* out) {
    using T = typename decltype(tag)::type;
    kernels<RandomKernels<T>>(self.device()).bernoulli(e, out, self.numel(), p);
  });
}

Tensor bernoulli_tensor_(const Tensor& self, const Tensor& p, Gen generator) {
  need_floating("bernoulli_", p);
  check(same(broadcast_sizes(self.sizes(), p.sizes()), self.sizes()),
        "bernoulli_(): probabilities of shape ", to_string(p.sizes()), " cannot be expanded to ",
        to_string(self.sizes()));
  if (self.is_meta()) return self;
  DType wide = p.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  if (self.numel() == 0) return self;
  Tensor ordered = in_memory_order(p, self),
         probability = empty(ordered.sizes(), {wide, self.device()});
  copy_into(probability, ordered);
  visit_floating(wide, "bernoulli_", [&](auto tag) {
    using P = typename decltype(tag)::type;
    const auto bad = kernels<SampleKernels<P>>(self.device())
                         .find_improbable(probability.data_as<P>(), probability.numel());
    check(!bad,
          "Expected p_in >= 0 && p_in <= 1 to be true, but got false: p_in = ", bad.value_or(0));
  });
  return fill_in_place("bernoulli_", self, generator, [&](auto tag, Engine& e, auto* out) {
    using T = typename decltype(tag)::type;
    const RandomKernels<T>& k = kernels<RandomKernels<T>>(self.device());
    if (wide == DType::Float64)
      k.bernoulli_each_double(e, out, probability.data_as<double>(), self.numel());
    else k.bernoulli_each(e, out, probability.data_as<float>(), self.numel());
  });
}

Tensor bernoulli(const Tensor& self, Gen generator) {
  need_floating("bernoulli", self);
  return bernoulli_tensor_(empty(self.sizes(), self.options()), self, generator);
}
Tensor bernoulli_p(const Tensor& self, double p, Gen generator) {
  return bernoulli_scalar_(empty(self.sizes(), self.options()), p, generator);
}

// Whether every value of [low, high) is one that the dtype can hold, as random_ and randint ask.
void check_range(const char* what, DType d, int64_t low, int64_t high) {
  check(low < high, what, " expects 'from' to be less than 'to', but got from=", low,
        " >= to=", high);
  if (is_inexact(d)) return;
  int64_t least = 0, most = 1;
  visit_real(d, what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      least = static_cast<int64_t>(std::numeric_limits<T>::min());
      most = static_cast<int64_t>(std::numeric_limits<T>::max());
    }
  });
  check(low >= least && low <= most, "from is out of bounds for ", d, ": ", low);
  check(high > least && high - 1 <= most, "to - 1 is out of bounds for ", d, ": ", high, " - 1");
}

}  // namespace

Tensor random_range_(const Tensor& self, int64_t low, std::optional<int64_t> high, Gen generator) {
  if (high) check_range("random_", self.dtype(), low, *high);
  uint64_t range = high ? static_cast<uint64_t>(*high) - static_cast<uint64_t>(low) : 0;
  if (!high) {  // from low to the largest value of the dtype
    int64_t most = visit_real(self.dtype(), "random_", [&](auto tag) -> int64_t {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>)
        return static_cast<int64_t>(std::numeric_limits<T>::max());
      else
        return int64_t(1) << (std::is_same_v<T, double>  ? 53
                              : std::is_same_v<T, float> ? 24
                              : std::is_same_v<T, Half>  ? 11
                                                         : 8);
    });
    range = static_cast<uint64_t>(most) - static_cast<uint64_t>(low) + 1;
  }
  return fill_in_place("random_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    kernels<RandomKernels<T>>(self.device()).range(e, p, self.numel(), range, low);
  });
}
namespace {

Tensor random_to_(const Tensor& self, int64_t high, Gen generator) {
  return random_range_(self, 0, high, generator);
}
Tensor random_(const Tensor& self, Gen generator) {
  return fill_in_place("random_", self, generator, [&](auto tag, Engine& e, auto* p) {
    using T = typename decltype(tag)::type;
    kernels<RandomKernels<T>>(self.device()).random(e, p, self.numel());
  });
}

constexpr Traits kFill{.backward = no_gradient, .forms = kMethod};
const Define random_ops[] = {
    {"uniform_(self!: Tensor, from: float = 0, to: float = 1, *, generator: Generator? = None) -> "
     "Tensor",
     "Fills with uniform numbers from [from, to).", kernel(uniform_), kFill},
    {"normal_(self!: Tensor, mean: float = 0, std: float = 1, *, generator: Generator? = None) -> "
     "Tensor",
     "Fills with normal numbers.", kernel(normal_), kFill},
    {"exponential_(self!: Tensor, lambd: float = 1, *, generator: Generator? = None) -> Tensor",
     "Fills with exponential numbers of rate `lambd`.", kernel(exponential_), kFill},
    {"cauchy_(self!: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator? = None) "
     "-> Tensor",
     "Fills with Cauchy numbers.", kernel(cauchy_), kFill},
    {"log_normal_(self!: Tensor, mean: float = 1, std: float = 2, *, generator: Generator? = None) "
     "-> Tensor",
     "Fills with the exponentials of normal numbers.", kernel(log_normal_), kFill},
    {"geometric_(self!: Tensor, p: float, *, generator: Generator? = None) -> Tensor",
     "Fills with the number of trials up to the first success, each of probability `p`.",
     kernel(geometric_), kFill},
    {"bernoulli_(self!: Tensor, p: float = 0.5, *, generator: Generator? = None) -> Tensor",
     "Fills with ones of probability `p` and zeros.", kernel(bernoulli_scalar_), kFill},
    {"bernoulli_(self!: Tensor, p: Tensor, *, generator: Generator? = None) -> Tensor",
     "Fills with ones and zeros, each one of its own probability.", kernel(bernoulli_tensor_),
     kFill},
    {"random_(self!: Tensor, from: int, to: int?, *, generator: Generator? = None) -> Tensor",
     "Fills with integers from [from, to), or from `from` up to what the dtype holds.",
     kernel(random_range_), kFill},
    {"random_(self!: Tensor, to: int, *, generator: Generator? = None) -> Tensor",
     "Fills with integers from [0, to).", kernel(random_to_), kFill},
    {"random_(self!: Tensor, *, generator: Generator? = None) -> Tensor",
     "Fills with integers over the whole range of the dtype.", kernel(random_), kFill},
    {"bernoulli(self: Tensor, *, generator: Generator? = None) -> Tensor",
     "Ones with the probabilities in the input, else zeros.",
     kernel(bernoulli),
     {.backward = no_gradient,
      .forms = kPublic | kOut,
      .out_memory = {.same_or_disjoint = 0b1},
      .out_dtype = OutDtype::SameKind}},
    {"bernoulli(self: Tensor, p: float, *, generator: Generator? = None) -> Tensor",
     "Ones with probability `p`, else zeros, in the shape of the input.",
     kernel(bernoulli_p),
     {.backward = no_gradient, .out_memory = {.same_or_disjoint = 0b1}}},
};

}  // namespace
}  // namespace taeda
