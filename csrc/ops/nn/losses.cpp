// Losses: an elementwise error, then its sum or mean. One fused loop forwards, one for each
// gradient backwards.
#include "kernels/nll.h"
#include "ops/core/half.h"
#include "ops/core/memory.h"
#include "ops/pointwise/rows.h"

namespace taeda {
namespace {

using namespace portable;

Tensor reduced(const Tensor& errors, int64_t reduction, const char* loss) {
  check<ValueError>(reduction >= kUnreduced && reduction <= kSum, loss,
                    "(): reduction must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  if (reduction == kUnreduced) return errors;
  GradMode off(false);
  return reduction == kMean ? op<"mean">(errors) : op<"sum">(errors);
}

// PyTorch computes some errors in the memory of one of the operands, whose dtype they then have.
Tensor in_place_of(const Tensor& operand, const Tensor& errors) {
  check(can_cast(errors.dtype(), operand.dtype()), "result type ", errors.dtype(),
        " can't be cast to the desired output type ", operand.dtype());
  return finished(errors, operand.dtype());
}

// A zero-dim gradient times a number.
Tensor scaled(const Tensor& g, double factor) {
  if (g.dtype() != DType::Float32 || !is_unwatched({&g}) || g.device().type != DeviceType::CPU)
    return g * factor;
  const Tensor r = empty(Dims{}, g.options());
  set_host_value(r, host_value<float>(g) * static_cast<float>(factor));
  return r;
}

// Expands the gradient of the (reduced) loss to one for every element.
Tensor spread(Backward& b, int64_t reduction, DimsRef sizes) {
  Tensor g = b.grad();
  if (reduction == kUnreduced) return g;
  if (reduction == kMean) g = scaled(g, 1.0 / static_cast<double>(numel_of(sizes)));
  if (is_unwatched({&g})) return make_view(g, sizes, Dims(sizes.size(), 0), g.offset());
  return expand(g, sizes);
}

Dims error_sizes(Backward& b) { return broadcast_sizes(b.sizes(0), b.sizes(1)); }

Tensor errors_of(Call& c, const PointwiseRow& row, std::initializer_list<Value> more = {}) {
  Operands operands;
  operands.add(std::get<Tensor>(c.args[0]));
  operands.add(std::get<Tensor>(c.args[1]));
  for (const Value& v : more) {
    if (auto* t = std::get_if<Tensor>(&v)) operands.add(*t);
    else operands.add_cast(std::get<Scalar>(v));
  }
  Call plain{c.op, c.args, Tensor()};
  return run_pointwise(row, operands, plain);
}
int64_t integer(const Call& c, size_t i) { return std::get<int64_t>(c.args[i]); }
double number(const Call& c, size_t i) { return std::get<double>(c.args[i]); }

// ---- losses of (self, target, reduction) ----

template <class Op> Value plain_loss(Call& c) {
  return reduced(errors_of(c, row<Op>()), integer(c, 2), c.op.name.c_str());
}
template <class Op> void plain_backward(Backward& b) {
  differentiate<Op>(b, {0, 1}, spread(b, b.arg<int64_t>(2), error_sizes(b)));
}

// ---- smooth_l1, huber: with a parameter ----

Value smooth_l1(Call& c) {
  const double beta = number(c, 3);
  check(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  const Tensor e = beta == 0 ? errors_of(c, row<AbsoluteError>())
                             : errors_of(c, row<SmoothL1>(), {Scalar(beta)});
  return reduced(e, integer(c, 2), "smooth_l1_loss");
}
void smooth_l1_backward(Backward& b) {
  const auto beta = b.arg<double>(3);
  const Tensor g = spread(b, b.arg<int64_t>(2), error_sizes(b));
  if (beta == 0) differentiate<AbsoluteError>(b, {0, 1}, g);
  else differentiate<SmoothL1>(b, {0, 1, Scalar(beta)}, g);
}
Value huber(Call& c) {
  const double delta = number(c, 3);
  check(delta > 0, "huber_loss does not support non-positive values for delta.");
  const Tensor e =
      in_place_of(std::get<Tensor>(c.args[0]), errors_of(c, row<Huber>(), {Scalar(delta)}));
  return reduced(e, integer(c, 2), "huber_loss");
}
void huber_backward(Backward& b) {
  differentiate<Huber>(b, {0, 1, Scalar(b.arg<double>(3))},
                       spread(b, b.arg<int64_t>(2), error_sizes(b)));
}

// ---- cross entropies ----

void check_probabilities(const Tensor& given, const char* name) {
  if (given.is_meta() || !is_floating(given.dtype())) return;
  const Tensor x = prepared(given, compute_dtype(given.dtype(), "binary_cross_entropy"));
  visit_floating(x.dtype(), "binary_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    check(kernels<NllKernels<T>>(x.device()).are_probabilities(x.numel(), x.data_as<T>()),
          "all elements of ", name, " should be between 0 and 1");
  });
}

Tensor weighted(const Tensor& errors, const Tensor& weight) {
  GradMode off(false);
  return weight.defined() ? errors * weight : errors;
}
const Tensor& weight_of(const Call& c, size_t i) { return Unpack<Tensor>::get(c.args[i]); }
Tensor spread_weighted(Backward& b, int64_t reduction, int weight, DimsRef sizes) {
  const Tensor g = spread(b, reduction, sizes);
  return b.has(weight) ? g * b.arg<Tensor>(weight) : g;
}

// Weights may be fewer than the errors, never more.
void check_weight(const Tensor& x, const Tensor& weight) {
  if (!weight.defined()) return;
  const Dims sizes = broadcast_sizes(x.sizes(), weight.sizes());
  check(same(sizes, x.sizes()), "output with shape ", to_string(x.sizes()),
        " doesn't match the broadcast shape ", to_string(sizes));
}

Value bce(Call& c) {
  const Tensor &x = std::get<Tensor>(c.args[0]), &t = std::get<Tensor>(c.args[1]);
  check<ValueError>(same(x.sizes(), t.sizes()), "Using a target size (", to_string(t.sizes()),
                    ") that is different to the input size (", to_string(x.sizes()),
                    ") is deprecated. Please ensure they have the same size.");
  check_weight(x, weight_of(c, 2));
  check(t.dtype() == x.dtype(), "binary_cross_entropy(): Found dtype ", t.dtype(), " but expected ",
        x.dtype(), ": the target's must be the input's");
  check_probabilities(x, "input");
  check_probabilities(t, "target");
  const Tensor e = weighted(errors_of(c, row<BinaryCrossEntropy>()), weight_of(c, 2));
  return reduced(in_place_of(x, e), integer(c, 3), "binary_cross_entropy");
}
void bce_backward(Backward& b) {
  differentiate<BinaryCrossEntropy>(b, {0, 1},
                                    spread_weighted(b, b.arg<int64_t>(3), 2, error_sizes(b)));
}
Value bce_with_logits(Call& c) {
  const Tensor &x = std::get<Tensor>(c.args[0]), &t = std::get<Tensor>(c.args[1]);
  check<ValueError>(same(x.sizes(), t.sizes()), "Target size (", to_string(t.sizes()),
                    ") must be the same as input size (", to_string(x.sizes()), ")");
  const Tensor& positive = weight_of(c, 3);
  check_weight(x, weight_of(c, 2));
  check_weight(x, positive);
  const Tensor e = positive.defined() ? errors_of(c, row<BceWithLogitsWeighted>(), {positive})
                                      : errors_of(c, row<BceWithLogits>());
  return reduced(in_place_of(t, weighted(e, weight_of(c, 2))), integer(c, 4),
                 "binary_cross_entropy_with_logits");
}
void bce_with_logits_backward(Backward& b) {
  const Tensor g = spread_weighted(b, b.arg<int64_t>(4), 2, error_sizes(b));
  if (b.has(3)) differentiate<BceWithLogitsWeighted>(b, {0, 1, 3}, g);
  else differentiate<BceWithLogits>(b, {0, 1}, g);
}
Value kl_div(Call& c) {
  const bool logs = std::get<bool>(c.args[3]);
  return reduced(logs ? errors_of(c, row<KlDivLog>()) : errors_of(c, row<KlDiv>()), integer(c, 2),
                 "kl_div");
}
void kl_div_backward(Backward& b) {
  const Tensor g = spread(b, b.arg<int64_t>(2), error_sizes(b));
  if (b.arg<bool>(3)) differentiate<KlDivLog>(b, {0, 1}, g);
  else differentiate<KlDiv>(b, {0, 1}, g);
}

constexpr uint32_t kSaves = saves_arg(0) | saves_arg(1);

const Define kLossesOps[] = {
    {"mse_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor",
     "The squared error, averaged (`reduction` 1), summed (2) or for each element (0).",
     raw_kernel(plain_loss<SquaredError>),
     {.backward = plain_backward<SquaredError>,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"l1_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor",
     "The absolute error, reduced as in mse_loss.",
     raw_kernel(plain_loss<AbsoluteError>),
     {.backward = plain_backward<AbsoluteError>,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"soft_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor",
     "`log(1 + exp(-target * self))`, reduced as in mse_loss.",
     raw_kernel(plain_loss<SoftMargin>),
     {.backward = plain_backward<SoftMargin>,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> "
     "Tensor",
     "Squared error over `2 beta` within `beta` of the target, absolute error less `beta / 2` "
     "outside.",
     raw_kernel(smooth_l1),
     {.backward = smooth_l1_backward,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor",
     "Half the squared error within `delta` of the target, a straight line outside (Huber 1964).",
     raw_kernel(huber),
     {.backward = huber_backward,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor? = None, reduction: int = "
     "1) -> Tensor",
     "The cross entropy of probabilities `self` with `target`; logarithms are held above -100.",
     raw_kernel(bce),
     {.backward = bce_backward,
      .saves = kSaves | saves_arg(2),
      .forms = 0,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::loss}},
    {"binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Tensor? = None, "
     "pos_weight: Tensor? = "
     "None, reduction: int = 1) -> Tensor",
     "The cross entropy of `sigmoid(self)` with `target`, computed from the logits without "
     "overflow.",
     raw_kernel(bce_with_logits),
     {.backward = bce_with_logits_backward,
      .saves = kSaves | saves_arg(2) | saves_arg(3),
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
    {"kl_div(self: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> "
     "Tensor",
     "The Kullback-Leibler divergence, element by element: `target * (log(target) - self)`, `self` "
     "being logarithms.",
     raw_kernel(kl_div),
     {.backward = kl_div_backward,
      .saves = kSaves,
      .forms = 0,
      .autocast = Precision::Float32,
      .vmap = vmap::loss}},
};

}  // namespace
}  // namespace taeda
