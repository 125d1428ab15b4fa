// New random tensors, and samples of given distributions.
#include "ops/random/fill.h"

namespace taeda {
namespace {

// ---- new tensors ----

Tensor made(DimsRef size, std::optional<DType> dtype, std::optional<Device> device,
            DType fallback) {
  return empty(size, {dtype.value_or(fallback), device.value_or(Device{})});
}

Tensor rand(const Dims& size, Gen generator, std::optional<DType> dtype,
            std::optional<Device> device) {
  return uniform_(made(size, dtype, device, default_dtype()), 0, 1, generator);
}
Tensor randn(const Dims& size, Gen generator, std::optional<DType> dtype,
             std::optional<Device> device) {
  Tensor t = normal_(made(size, dtype, device, default_dtype()), 0, 1, generator);
  return t;
}
// Fills a new tensor with integers of [low, high). Those of unsigned dtypes without arithmetic are
// drawn as int64.
Tensor integers(const Tensor& t, int64_t low, int64_t high, Gen generator) {
  const DType d = t.dtype();
  if (d != DType::UInt16 && d != DType::UInt32 && d != DType::UInt64)
    return random_range_(t, low, high, generator);
  const int64_t most = d == DType::UInt16 ? 65535 : d == DType::UInt32 ? 4294967295 : INT64_MAX;
  check(low >= 0 && low <= most, "from is out of bounds for ", d, ": ", low);
  check(high - 1 <= most, "to - 1 is out of bounds for ", d, ": ", high, " - 1");
  Tensor wide = empty(t.sizes(), {DType::Int64, t.device()});
  random_range_(wide, low, high, generator);
  return op<"copy_">(t, wide);
}
Tensor randint(int64_t low, int64_t high, const Dims& size, Gen generator,
               std::optional<DType> dtype, std::optional<Device> device) {
  return integers(made(size, dtype, device, DType::Int64), low, high, generator);
}
Tensor randint_high(int64_t high, const Dims& size, Gen generator, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return randint(0, high, size, generator, dtype, device);
}
Tensor randperm(int64_t n, Gen generator, std::optional<DType> dtype,
                std::optional<Device> device) {
  check(n >= 0, "n must be non-negative, got", n);
  Tensor t = empty(Dims{n}, {DType::Int64, device.value_or(Device{})});
  if (!t.is_meta()) {
    GeneratorImpl& g = resolve(generator, t.device());
    std::lock_guard lock(g.mutex);
    kernels<DrawKernels>(t.device()).permutation(g.engine, t.data_as<int64_t>(), n);
  }
  t = finished(t, dtype.value_or(DType::Int64));
  return t;
}

Options like_options(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device) {
  return {dtype.value_or(t.dtype()), device.value_or(t.device())};
}
// A contiguous tensor is filled in memory order, a permuted one keeps its layout.
Tensor made_like(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device) {
  Options o = like_options(t, dtype, device);
  return o.device == t.device() ? empty_like(t, o.dtype) : empty(t.sizes(), o);
}
Tensor rand_like(const Tensor& self, Gen generator, std::optional<DType> dtype,
                 std::optional<Device> device) {
  return uniform_(made_like(self, dtype, device), 0, 1, generator);
}
Tensor randn_like(const Tensor& self, Gen generator, std::optional<DType> dtype,
                  std::optional<Device> device) {
  Tensor t = normal_(made_like(self, dtype, device), 0, 1, generator);
  return t;
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, Gen generator,
                    std::optional<DType> dtype, std::optional<Device> device) {
  return integers(made_like(self, dtype, device), low, high, generator);
}
Tensor randint_like_high(const Tensor& self, int64_t high, Gen generator,
                         std::optional<DType> dtype, std::optional<Device> device) {
  return randint_like(self, 0, high, generator, dtype, device);
}

void check_deviations(const Tensor& std) {
  check(!is_complex(std.dtype()), "normal expects standard deviation to be non-complex");
  check(std.is_meta() || std.numel() == 0 || op<"min">(std).item().to_double() >= 0,
        "normal expects all elements of std >= 0.0");
}

Tensor normal_tensors(const Tensor& mean, const Tensor& std, Gen generator) {
  check_deviations(std);
  Dims sizes = broadcast_sizes(mean.sizes(), std.sizes());
  Tensor t = normal_(empty(sizes, mean.options()), 0, 1, generator);
  return t * std + mean;
}
Tensor normal_mean(const Tensor& mean, double std, Gen generator) {
  check(std >= 0, "normal expects std >= 0.0, but found std ", std);
  return normal_(empty(mean.sizes(), mean.options()), 0, 1, generator) * std + mean;
}
Tensor normal_std(double mean, const Tensor& std, Gen generator) {
  check_deviations(std);
  return normal_(empty(std.sizes(), std.options()), 0, 1, generator) * std + mean;
}
Tensor normal_size(double mean, double std, const Dims& size, Gen generator,
                   std::optional<DType> dtype, std::optional<Device> device) {
  Tensor t = normal_(made(size, dtype, device, default_dtype()), mean, std, generator);
  return t;
}

// ---- samples ----

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, Gen generator) {
  need_floating("multinomial", self);
  check(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  int64_t categories = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  check(replacement || samples <= categories,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement: ", samples,
        " of ", categories);
  Dims sizes = self.dim() == 2 ? Dims{rows, samples} : Dims{samples};
  Tensor out = empty(sizes, {DType::Int64, self.device()});
  if (out.is_meta()) return out;
  DType wide = self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor w = prepared(self, wide);
  visit_floating(wide, "multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto [fine, some] =
        kernels<SampleKernels<T>>(w.device()).look_at_weights(w.data_as<T>(), rows, categories);
    check(fine, "probability tensor contains either `inf`, `nan` or element < 0");
    check(some, "invalid multinomial distribution (sum of probabilities <= 0)");
  });
  if (!replacement || samples == 1) {
    // The index of the largest p / q with exponential q is a draw from p; the next largest are
    // further draws without replacement.
    Tensor q = exponential_(empty(w.sizes(), w.options()), 1, generator);
    Tensor race = w / q;
    return samples == 1 ? op<"argmax">(race, int64_t(-1), true) : ops<"topk">(race, samples)[1];
  }
  GeneratorImpl& g = resolve(generator, out.device());
  std::lock_guard lock(g.mutex);
  visit_floating(wide, "multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SampleKernels<T>>(w.device())
        .multinomial(g.engine, out.data_as<int64_t>(), w.data_as<T>(), rows, categories, samples);
  });
  return out;
}

Tensor poisson(const Tensor& self, Gen generator) {
  DType compute = compute_dtype(self.dtype(), "poisson");
  Tensor rates = prepared(self, compute), out = empty(self.sizes(), rates.options());
  if (out.is_meta()) return finished(out, self.dtype());
  GeneratorImpl& g = resolve(generator, out.device());
  std::lock_guard lock(g.mutex);
  visit_floating(compute, "poisson", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool good = kernels<SampleKernels<T>>(out.device())
                          .poisson(g.engine, out.data_as<T>(), rates.data_as<T>(), rates.numel());
    check(good, "invalid Poisson rate, expected rate to be non-negative");
  });
  return finished(out, self.dtype());
}

void no_gradients(Backward& b) {
  for (int i = 0; i < 2; ++i) {
    if (b.has(i) && b.needs(i)) b.set(i, zeros(b.sizes(i), b.options(i)));
  }
}

constexpr Traits kMake{.forms = kFunction | kOut, .by_draws = true};
constexpr Traits kDraw{
    .backward = no_gradients, .forms = kFunction | kOut, .out_dtype = OutDtype::Castable};
constexpr Traits kMakeLike{.forms = kFunction, .non_differentiable = 1};

#define MAKE \
  ", *, generator: Generator? = None, dtype: dtype? = None, device: device? = None) -> Tensor"

const Define draw_ops[] = {
    {"rand(size: int[]" MAKE, "Uniform numbers from [0, 1).", kernel(rand), kMake},
    {"randn(size: int[]" MAKE, "Standard normal numbers.", kernel(randn), kMake},
    {"randint(low: int, high: int, size: int[]" MAKE, "Integers from [low, high).", kernel(randint),
     kMake},
    {"randint(high: int, size: int[]" MAKE, "Integers from [0, high).", kernel(randint_high),
     kMake},
    {"randperm(n: int" MAKE, "The numbers 0 .. n-1 in random order.", kernel(randperm), kMake},
    {"rand_like(self: Tensor" MAKE, "Uniform numbers from [0, 1) in the shape of the input.",
     kernel(rand_like), kMakeLike},
    {"randn_like(self: Tensor" MAKE, "Standard normal numbers in the shape of the input.",
     kernel(randn_like), kMakeLike},
    {"randint_like(self: Tensor, low: int, high: int" MAKE,
     "Integers from [low, high) in the shape of the input.", kernel(randint_like), kMakeLike},
    {"randint_like(self: Tensor, high: int" MAKE,
     "Integers from [0, high) in the shape of the input.", kernel(randint_like_high), kMakeLike},
    {"normal(mean: Tensor, std: Tensor, *, generator: Generator? = None) -> Tensor",
     "Normal numbers, each of its own mean and deviation.", kernel(normal_tensors),
     kDraw.with(OutMemory{.same_or_disjoint = 0b11})},
    {"normal(mean: Tensor, std: float = 1, *, generator: Generator? = None) -> Tensor",
     "Normal numbers, each of its own mean.", kernel(normal_mean),
     kDraw.with(OutMemory{.same_or_disjoint = 0b11})},
    {"normal(mean: float, std: Tensor, *, generator: Generator? = None) -> Tensor",
     "Normal numbers, each of its own deviation.", kernel(normal_std),
     kDraw.with(OutMemory{.same_or_disjoint = 0b11})},
    {"normal(mean: float, std: float, size: int[]" MAKE,
     "Normal numbers of one mean and deviation.", kernel(normal_size),
     kMake.with(OutMemory{.same_or_disjoint = 0b11})},
    {"multinomial(self: Tensor, num_samples: int, replacement: bool = False, *, generator: "
     "Generator? = None) -> Tensor",
     "Indices drawn from each row of weights (rows, categories) or (categories): (rows, "
     "num_samples).",
     kernel(multinomial),
     {.forms = kPublic | kOut, .vmap = vmap::random(1)}},
    {"poisson(self: Tensor, generator: Generator? = None) -> Tensor",
     "Poisson counts with the rates in the input.",
     kernel(poisson),
     {.backward = no_gradient, .forms = kFunction}},
};

#undef MAKE

}  // namespace
}  // namespace taeda
