// Pointwise ops that choose between functors by their arguments, activations aside.
#include <cmath>

#include "ops/core/promotion.h"
#include "ops/pointwise/copy.h"
#include "ops/pointwise/rows.h"

namespace taeda {
namespace {

using namespace portable;
namespace core = ::taeda;

constexpr uint32_t kAllForms = kPublic | kInplace | kOut | kMixed;

const Tensor& tensor(const Call& c, size_t i) { return std::get<Tensor>(c.args[i]); }
bool given(const Call& c, size_t i) { return !is_none(c.args[i]); }

// ---- add, sub: alpha ----

void check_alpha(const Call& c, Scalar alpha) {
  check(!alpha.is_bool() || result_type(tensor(c, 0), tensor(c, 1)) == DType::Bool,
        "Boolean alpha only supported for Boolean results.");
  if (alpha.is_integral()) return;
  const DType d = result_type(tensor(c, 0), tensor(c, 1));
  check(is_inexact(d),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(core::is_complex(d) || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
}
bool is_one(Scalar s) { return s.kind() == Scalar::Kind::Int && s.to_int() == 1; }

template <class Plain, class Scaled> Value scaled_kernel(Call& c) {
  const Scalar alpha = std::get<Scalar>(c.args[2]);
  if (is_one(alpha)) return run_pointwise(row<Plain>(), c, {0, 1});
  check_alpha(c, alpha);
  return run_pointwise(row<Scaled>(), c, {0, 1, 2});
}
template <class Plain, class Scaled> void scaled_backward(Backward& b) {
  const auto alpha = b.arg<Scalar>(2);
  if (!is_one(alpha)) return differentiate<Scaled>(b, {0, 1, alpha});
  const Source from[] = {0, 1};
  Derivative d(b, row<Plain>(), from, b.grad());
  d.pass(0);
  if constexpr (std::is_same_v<Plain, Add>) d.pass(1);
  else d.set(1, [](const Derivative& v) { return -v.g; });
}

// ---- div: rounding_mode ----

enum class Rounding { None, Trunc, Floor };
Rounding rounding_of(const std::optional<std::string>& mode) {
  if (!mode) return Rounding::None;
  if (*mode == "trunc") return Rounding::Trunc;
  check(*mode == "floor",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode,
        "'");
  return Rounding::Floor;
}
Value div_kernel(Call& c) {
  switch (rounding_of(Unpack<std::optional<std::string>>::get(c.args[2]))) {
    case Rounding::None: return run_pointwise(row<Div>(), c, {0, 1});
    case Rounding::Trunc: return run_pointwise(row<TruncDivide>(), c, {0, 1});
    default: return run_pointwise(row<FloorDivide>(), c, {0, 1});
  }
}
void div_backward(Backward& b) {
  if (b.arg<std::optional<std::string>>(2)) differentiate<FloorDivide>(b, {0, 1});
  else differentiate<Div>(b, {0, 1});
}
Value true_divide_kernel(Call& c) { return run_pointwise(row<Div>(), c, {0, 1}); }

// ---- pow: exponents that have a loop of their own ----

enum class Power { General, Square, Cube, Root, InverseRoot, Inverse, InverseSquare };
Power power_of(const Tensor& base, const Tensor& exponent) {
  if (!exponent.is_wrapped_number() || !is_inexact(base.dtype()) || base.is_wrapped_number())
    return Power::General;
  const Scalar s = exponent.item();
  if (s.is_complex()) return Power::General;
  const double e = s.to_double();
  if (e == 2) return Power::Square;
  if (e == 3) return Power::Cube;
  if (e == 0.5) return Power::Root;
  if (e == -0.5) return Power::InverseRoot;
  if (e == -1) return Power::Inverse;
  if (e == -2) return Power::InverseSquare;
  return Power::General;
}
Value pow_kernel(Call& c) {
  const Tensor &base = tensor(c, 0), &exponent = tensor(c, 1);
  switch (power_of(base, exponent)) {
    case Power::Square: return run_pointwise(row<Square>(), c, {0});
    case Power::Cube: return run_pointwise(row<Cube>(), c, {0});
    case Power::Root: return run_pointwise(row<SquareRoot>(), c, {0});
    case Power::InverseRoot: return run_pointwise(row<InverseRoot>(), c, {0});
    case Power::Inverse: return run_pointwise(row<Inverse>(), c, {0});
    case Power::InverseSquare: return run_pointwise(row<InverseSquare>(), c, {0});
    default: break;
  }
  if (exponent.is_wrapped_number() && is_integral(exponent.dtype()) && is_integral(base.dtype())) {
    check(exponent.item().to_int() >= 0, "Integers to negative integer powers are not allowed.");
  }
  return run_pointwise(row<Pow>(), c, {0, 1});
}
void pow_backward(Backward& b) {
  const Tensor base = b.arg<Tensor>(0), exponent = b.arg<Tensor>(1);
  switch (power_of(base, exponent)) {
    case Power::Square: return differentiate<Square>(b, {0});
    case Power::Cube: return differentiate<Cube>(b, {0});
    case Power::Root: return differentiate<SquareRoot>(b, {0});
    case Power::InverseRoot: return differentiate<InverseRoot>(b, {0});
    case Power::Inverse: return differentiate<Inverse>(b, {0});
    case Power::InverseSquare: return differentiate<InverseSquare>(b, {0});
    default: break;
  }
  const Source from[] = {0, 1};
  Derivative d(b, row<Pow>(), from, b.grad());
  if (core::is_complex(d.g.dtype())) {
    // The derivative by the exponent has the logarithm of the base, which may be negative.
    for (Tensor& t : std::span(d.x, 2)) {
      if (t.defined() && !core::is_complex(t.dtype())) t = to(t, d.g.dtype());
    }
  }
  differentiate<Pow>(d, std::make_index_sequence<2>());
}
Value square_kernel(Call& c) {
  if (tensor(c, 0).dtype() != DType::Bool) return run_pointwise(row<Square>(), c, {0});
  const Tensor two(2);  // the square of a bool is an integer
  Operands operands;
  operands.add(tensor(c, 0));
  operands.add(two);
  return run_pointwise(row<Pow>(), operands, c);
}
Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const bool complex = core::is_complex(self.dtype()) || core::is_complex(exponent.dtype());
  const DType d = complex ? DType::Complex128 : DType::Float64;
  return op<"pow">(to(self, d), exponent.is_wrapped_number() ? exponent : to(exponent, d));
}

Tensor float_power_inplace(const Tensor& self, const Tensor& exponent) {
  // The derivative reads the base, which is overwritten below.
  const bool recorded = GradMode::enabled() && self.requires_grad_flag();
  Tensor result = float_power(recorded ? clone(self) : self, exponent);
  check(self.dtype() == result.dtype(), "the base given to float_power_ has dtype ", self.dtype(),
        " but the operation's result requires dtype ", result.dtype());
  return op<"copy_">(self, result);
}

// ---- clamp: either bound may be missing ----

Value clamp_kernel(Call& c) {
  check(given(c, 1) || given(c, 2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!given(c, 2)) return run_pointwise(row<ClampMin>(), c, {0, 1});
  if (!given(c, 1)) return run_pointwise(row<ClampMax>(), c, {0, 2});
  return run_pointwise(row<Clamp>(), c, {0, 1, 2});
}
void clamp_backward(Backward& b) {
  auto bounded = [&](int i) { return b.has(i) || b.arg<std::optional<Scalar>>(i); };
  if (!bounded(2)) differentiate<ClampMin>(b, {0, 1});
  else if (!bounded(1)) differentiate<ClampMax>(b, {0, 2});
  else differentiate<Clamp>(b, {0, 1, 2});
}

// ---- rounding to decimals ----

Scalar power_of_ten(int64_t decimals) {
  return std::pow(10.0, static_cast<double>(std::abs(decimals)));
}
Value round_kernel(Call& c) {
  const int64_t decimals = std::get<int64_t>(c.args[1]);
  if (decimals == 0 || is_integral(tensor(c, 0).dtype())) {
    check<NotImplemented>(decimals == 0,
                          "round(): decimals is not supported for the integer dtype ",
                          tensor(c, 0).dtype());
    return run_pointwise(row<Round>(), c, {0});
  }
  Operands operands;
  operands.add(tensor(c, 0));
  operands.add_cast(power_of_ten(decimals));
  operands.add_cast(Scalar(decimals < 0));
  return run_pointwise(row<RoundTo>(), operands, c);
}
void round_backward(Backward& b) { differentiate<Round>(b, {0}); }

// ---- special functions ----

Value logit_kernel(Call& c) {
  if (!given(c, 1)) return run_pointwise(row<Logit>(), c, {0});
  Operands operands;
  operands.add(tensor(c, 0));
  operands.add_cast(Scalar(std::get<double>(c.args[1])));
  return run_pointwise(row<LogitEps>(), operands, c);
}
void logit_backward(Backward& b) {
  if (auto eps = b.arg<std::optional<double>>(1)) differentiate<LogitEps>(b, {0, Scalar(*eps)});
  else differentiate<Logit>(b, {0});
}

Value run_polygamma(Call& c, int64_t n, const Tensor& x) {
  check(n >= 0, "polygamma(n, x) does not support negative n.");
  Operands operands;
  operands.add_cast(Scalar(n));
  operands.add(x);
  return run_pointwise(row<Polygamma>(), operands, c);
}
Value polygamma_kernel(Call& c) {
  return run_polygamma(c, std::get<int64_t>(c.args[0]), tensor(c, 1));
}
void polygamma_backward(Backward& b) {
  differentiate<Polygamma>(b, {Scalar(b.arg<int64_t>(0)), 1});
}
Value polygamma_method_kernel(Call& c) {
  return run_polygamma(c, std::get<int64_t>(c.args[1]), tensor(c, 0));
}
void polygamma_method_backward(Backward& b) {
  differentiate<Polygamma>(b, {Scalar(b.arg<int64_t>(1)), 0});
}

// ---- choices ----

Value where_kernel(Call& c) { return run_pointwise(row<Where>(), c, {0, 1, 2}); }
void where_backward(Backward& b) { differentiate<Where>(b, {0, 1, 2}); }

// self where the mask is false, else value, converted to self's dtype.
Value masked_fill_kernel(Call& c) {
  const Tensor &self = tensor(c, 0), &mask = tensor(c, 1), &value = tensor(c, 2);
  check(mask.dtype() == DType::Bool,
        "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.dtype());
  check(value.dim() == 0,
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        value.dim(), " dimension(s).");
  if (value.is_wrapped_number()) {
    check_fits(value.item(), self.dtype());
  } else {
    check(can_cast(value.dtype(), self.dtype()), "value cannot be converted to type ",
          name(self.dtype()), " without overflow");
  }
  Operands operands;
  operands.add(mask);
  operands.add_cast(value);
  operands.add(self);
  return run_pointwise(row<Where>(), operands, c);
}
void masked_fill_backward(Backward& b) { differentiate<Where>(b, {1, 2, 0}); }

struct Replacements {
  Scalar nan, high, low;
};
Replacements replacements(DType d, std::optional<double> nan, std::optional<double> high,
                          std::optional<double> low) {
  double largest = 0;
  if (is_floating(d)) {
    largest = d == DType::Float16    ? 65504.0
              : d == DType::BFloat16 ? 3.3895313892515355e38
              : d == DType::Float32  ? 3.4028234663852886e38
                                     : 1.7976931348623157e308;
  }
  return {nan.value_or(0.0), high.value_or(largest), low.value_or(-largest)};
}
Value nan_to_num_kernel(Call& c) {
  auto number = [&](size_t i) { return Unpack<std::optional<double>>::get(c.args[i]); };
  const Replacements r =
      replacements(to_real(tensor(c, 0).dtype()), number(1), number(2), number(3));
  Operands operands;
  operands.add(tensor(c, 0));
  operands.add_cast(r.nan);
  operands.add_cast(r.high);
  operands.add_cast(r.low);
  return run_pointwise(row<NanToNum>(), operands, c);
}
void nan_to_num_backward(Backward& b) {
  differentiate<NanToNum>(b, {0, Scalar(0.0), Scalar(0.0), Scalar(0.0)});
}

Tensor ldexp(const Tensor& self, const Tensor& other) { return self * op<"exp2">(other); }

TensorList where_indices(const Tensor& condition) {
  return core::ops<"unbind">(op<"nonzero">(condition), 1);
}

const Define kCasesOps[] = {
    {"where(condition: Tensor) -> Tensor[]",
     "One tensor of indices for each dimension: where the condition holds.",
     kernel(where_indices),
     {.forms = kFunction, .composite = true, .numbers = Numbers::Anywhere}},
    {"add(self: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor",
     "`self + alpha * other`, element by element.",
     raw_kernel(scaled_kernel<Add, AddScaled>, true),
     {.backward = scaled_backward<Add, AddScaled>,
      .forms = kAllForms | kForeach,
      .elementwise = true,
      .numbers = Numbers::Anywhere,
      .old_orders = "sat"}},
    {"sub(self: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor",
     "`self - alpha * other`, element by element.",
     raw_kernel(scaled_kernel<Sub, SubScaled>, true),
     {.backward = scaled_backward<Sub, SubScaled>,
      .forms = kAllForms | kForeach,
      .elementwise = true,
      .numbers = Numbers::Anywhere,
      .old_orders = "sat"}},
    {"div(self: Tensor, other: Tensor, *, rounding_mode: str? = None) -> Tensor",
     "The quotient, element by element; `rounding_mode` 'trunc' rounds it towards 0, 'floor' down.",
     raw_kernel(div_kernel, true),
     {.backward = div_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kAllForms | kForeach,
      .elementwise = true,
      .numbers = Numbers::Anywhere}},
    {"true_divide(self: Tensor, other: Tensor) -> Tensor",
     "The quotient, element by element, never rounded.",
     raw_kernel(true_divide_kernel, true),
     {.backward = pointwise_backward<Div>,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kAllForms,
      .elementwise = true,
      .numbers = Numbers::Anywhere}},
    {"pow(self: Tensor, exponent: Tensor) -> Tensor",
     "`self ** exponent`, element by element.",
     raw_kernel(pow_kernel, true),
     {.backward = pow_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kAllForms | kForeach,
      .elementwise = true,
      .autocast = kFloat32OnCuda,
      .numbers = Numbers::OneTensor}},
    {"square(self: Tensor) -> Tensor",
     "Each element times itself.",
     raw_kernel(square_kernel, true),
     {.backward = pointwise_backward<Square>,
      .saves = saves_arg(0),
      .forms = kAllForms | kInplaceFunction,
      .elementwise = true,
      .keeps_zero = true}},
    {"float_power(self: Tensor, exponent: Tensor) -> Tensor",
     "`self ** exponent` computed in double precision.",
     kernel(float_power),
     {.forms = kPublic | kOut, .composite = true, .numbers = Numbers::OneTensor}},
    {"float_power_(self!: Tensor, exponent: Tensor) -> Tensor",
     "`float_power` in place: `self` must have double precision.",
     kernel(float_power_inplace),
     {.forms = kMethod, .composite = true, .numbers = Numbers::OneTensor}},
    {"clamp(self: Tensor, min: Tensor? = None, max: Tensor? = None) -> Tensor",
     "Each element held between `min` and `max`; either may be missing.",
     raw_kernel(clamp_kernel, true),
     {.backward = clamp_backward,
      .saves = saves_arg(0) | saves_arg(1) | saves_arg(2),
      .forms = kAllForms | kInplaceFunction,
      .elementwise = true,
      .numbers = Numbers::AfterSelf}},
    {"round(self: Tensor, *, decimals: int = 0) -> Tensor",
     "The nearest number with `decimals` digits after the point; halves go to the even neighbour.",
     raw_kernel(round_kernel, true),
     {.backward = round_backward,
      .forms = kAllForms | kInplaceFunction | kForeach,
      .elementwise = true,
      .keeps_zero = true,
      .out_dtype = OutDtype::Exact}},
    {"logit(self: Tensor, eps: float? = None) -> Tensor",
     "`log(x / (1 - x))`, with x first held between `eps` and `1 - eps` where that is given.",
     raw_kernel(logit_kernel, true),
     {.backward = logit_backward,
      .saves = saves_arg(0),
      .forms = kAllForms | kInplaceFunction,
      .elementwise = true}},
    {"polygamma(n: int, self: Tensor) -> Tensor",
     "The n-th derivative of `digamma`.",
     raw_kernel(polygamma_kernel, true),
     {.backward = polygamma_backward,
      .saves = saves_arg(1),
      .forms = kFunction | kOut,
      .elementwise = true}},
    {"polygamma(self: Tensor, n: int) -> Tensor",
     "The n-th derivative of `digamma`.",
     raw_kernel(polygamma_method_kernel, true),
     {.backward = polygamma_method_backward,
      .saves = saves_arg(0),
      .forms = kMethod | kInplace,
      .elementwise = true}},
    {"where(condition: Tensor, self: Tensor, other: Tensor) -> Tensor",
     "`self` where the condition holds, `other` elsewhere.",
     raw_kernel(where_kernel, true),
     {.backward = where_backward,
      .saves = saves_arg(0),
      .forms = kPublic | kOut | kMixed,
      .elementwise = true,
      .numbers = Numbers::Anywhere,
      .out_dtype = OutDtype::Exact}},
    {"masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor",
     "`value` where the mask is set, `self` elsewhere.",
     raw_kernel(masked_fill_kernel, true),
     {.backward = masked_fill_backward,
      .saves = saves_arg(1),
      .forms = kPublic | kInplace | kMixed,
      .elementwise = true,
      .numbers = Numbers::Anywhere}},
    {"nan_to_num(self: Tensor, nan: float? = None, posinf: float? = None, neginf: float? = None) "
     "-> Tensor",
     "nan replaced by `nan` (0), infinities by `posinf` and `neginf` (the dtype's largest and "
     "smallest numbers).",
     raw_kernel(nan_to_num_kernel, true),
     {.backward = nan_to_num_backward,
      .saves = saves_arg(0),
      .forms = kAllForms | kInplaceFunction,
      .elementwise = true,
      .keeps_zero = true,
      .out_dtype = OutDtype::Exact}},
    {"ldexp(self: Tensor, other: Tensor) -> Tensor",
     "`self * 2**other`.",
     kernel(ldexp),
     {.forms = kAllForms | kInplaceFunction,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b1},
      .out_dtype = OutDtype::Castable}},
};

const bool aliases = register_aliases({{"subtract", "sub"}, {"divide", "div"}, {"clip", "clamp"}});

}  // namespace
}  // namespace taeda
