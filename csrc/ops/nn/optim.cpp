// Optimizer steps: one call updates every parameter of a group.
#include "kernels/optim.h"

#include <array>
#include <cmath>
#include <vector>

#include "ops/core/op.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

constexpr size_t kGradient = OptimUpdate::kGradient;

// The lists of a parameter group. `scalars` holds zero-dim tensors per parameter, such as step
// counts.
struct Group {
  const char* what;
  const TensorList& params;
  const TensorList& grads;
  std::array<const TensorList*, OptimUpdate::kOperands - 2> states;
  std::array<const TensorList*, 3> scalars;
};
// Empty lists stand for states that the optimizer does not use.
const TensorList* used(const TensorList& states) { return states.empty() ? nullptr : &states; }

void check_like(const char* what, size_t i, const Tensor& param, const Tensor& other,
                const char* role) {
  check(same(param.sizes(), other.sizes()), what, "(): parameter ", i, " has shape ",
        to_string(param.sizes()), " but its ", role, " has shape ", to_string(other.sizes()));
  check(param.device() == other.device(), what, "(): parameter ", i, " is on ", param.device(),
        " but its ", role, " is on ", other.device());
  check(
      param.dtype() == other.dtype() || (is_floating(param.dtype()) && is_floating(other.dtype())),
      what, "(): parameter ", i, " has dtype ", name(param.dtype()), " but its ", role,
      " has dtype ", name(other.dtype()));
}

// Checks every parameter before the first is changed, so that a failed step leaves everything
// unchanged.
void check_group(const Group& g) {
  const size_t n = g.params.size();
  auto check_length = [&](const TensorList& list) {
    check<ValueError>(list.size() == n, g.what,
                      "(): every list must have one tensor for each of the ", n, " params, got ",
                      list.size());
  };
  check_length(g.grads);
  for (const TensorList* list : g.states) {
    if (list) check_length(*list);
  }
  for (const TensorList* list : g.scalars) {
    if (!list) continue;
    check_length(*list);
    for (const Tensor& t : *list) {
      check<TypeError>(
          is_floating(t.dtype()) && !is_half(t.dtype()) && t.numel() == 1 && !t.is_meta(), g.what,
          "(): counts of steps must be zero-dim float32 tensors");
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const Tensor& param = g.params[i];
    check(is_floating(param.dtype()) || is_complex(param.dtype()), g.what, "(): parameter ", i,
          " has dtype ", name(param.dtype()), "; only floating-point parameters can be updated");
    check(!param.is_meta(), g.what, "(): parameter ", i,
          " is on the meta device and has no values");
    check_like(g.what, i, param, g.grads[i], "gradient");
    check(param.dtype() == g.grads[i].dtype(), g.what, "(): parameter ", i, " has dtype ",
          name(param.dtype()), " but its gradient has dtype ", name(g.grads[i].dtype()));
    for (const TensorList* list : g.states) {
      if (list) check_like(g.what, i, param, (*list)[i], "state");
    }
  }
}

// Whether `t` and `like` have the same dense layout, so that one loop over memory can pair their
// elements.
bool has_same_layout(const Tensor& t, const Tensor& like) {
  if (like.is_contiguous()) return t.is_contiguous();
  return same(t.strides(), like.strides()) && is_dense_nonoverlapping(t.sizes(), t.strides());
}

// The dtype of a complex dtype's components; others are unchanged.
DType real_of(DType d) {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}

// A copy of a tensor that is not laid out as its parameter is, and where to write it back, if at
// all.
struct Copy {
  const Tensor* to;
  Tensor values;
};

// Parameter i and what goes with it, its step still to be set. Complex numbers count as pairs of
// real ones.
OptimUpdate update_of(const Group& g, size_t i, std::vector<Copy>& copies) {
  const Tensor& param = g.params[i];
  const bool dense = is_dense_nonoverlapping(param.sizes(), param.strides());
  OptimUpdate u;
  auto take = [&](size_t k, const Tensor& t) {
    const Tensor* from = &t;
    if (!dense || !has_same_layout(t, param)) {
      Tensor copy = dense ? empty_strided(param.sizes(), param.strides(), t.options())
                          : empty(param.sizes(), t.options());
      copy_into(copy, t);
      from = &copies.emplace_back(k == kGradient ? nullptr : &t, std::move(copy)).values;
    }
    u.data[k] = from->data();
    u.dtypes[k] = real_of(t.dtype());
  };
  take(0, param);
  take(kGradient, g.grads[i]);
  for (size_t k = 0; k < g.states.size(); ++k) {
    if (g.states[k]) take(k + 2, (*g.states[k])[i]);
  }
  u.n = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
  return u;
}

double get(const Tensor& scalar) {
  if (scalar.is_off_host()) return scalar.item().to_double();
  return scalar.dtype() == DType::Float64 ? *scalar.data_as<double>() : *scalar.data_as<float>();
}

// Sets a zero-dim tensor; returns the value as its dtype holds it.
double set(const Tensor& scalar, double value) {
  if (scalar.is_off_host()) {
    copy_into(scalar, Tensor(value));
    return get(scalar);
  }
  if (scalar.dtype() == DType::Float64) return *scalar.data_as<double>() = value;
  return *scalar.data_as<float>() = static_cast<float>(value);
}

// Multiplies a zero-dim tensor, in its dtype.
double multiply(const Tensor& scalar, double factor) {
  return set(scalar, scalar.dtype() == DType::Float64 ? get(scalar) * factor
                                                      : get(scalar) * static_cast<float>(factor));
}

// Powers of a number, with the last one cached: parameters of a group usually have the same step
// count.
class Power {
 public:
  explicit Power(double base) : base_(base) {}
  double operator()(double exponent) {
    if (exponent != exponent_) value_ = std::pow(base_, exponent_ = exponent);
    return value_;
  }

 private:
  double base_, exponent_ = 0, value_ = 1;
};

// Updates every parameter of a group; make(i, count) gives the coefficients for parameter i at step
// `count`, from 1. The first list of scalars, if any, holds the step counts.
template <class Make> void step_group(const Group& g, Make&& make) {
  check_group(g);
  const size_t count = g.params.size();
  std::vector<Copy> copies;
  std::vector<OptimUpdate> updates;
  updates.reserve(count);
  for (size_t i = 0; i < count; ++i) updates.push_back(update_of(g, i, copies));
  for (size_t i = 0; i < count; ++i) {
    const Tensor* counter = g.scalars[0] ? &(*g.scalars[0])[i] : nullptr;
    updates[i].step = make(i, counter ? set(*counter, get(*counter) + 1) : 0);
  }
  if (count) kernels<OptimKernels>(g.params[0].device()).step(updates);
  for (const Copy& copy : copies) {
    if (copy.to) copy_into(*copy.to, copy.values);
  }
  for (const TensorList* list : {&g.params, g.states[0], g.states[1], g.states[2]}) {
    if (!list) continue;
    for (const Tensor& t : *list) t.bump_version();
  }
}

// Weight decay in either of its forms.
StepBase base(double lr, double weight_decay, bool maximize, bool decoupled = false) {
  return {lr, decoupled ? 0 : weight_decay, decoupled ? 1 - lr * weight_decay : 1, maximize};
}

void fused_sgd(const TensorList& params, const TensorList& grads, const TensorList& momenta,
               double lr, double momentum, double dampening, double weight_decay, bool nesterov,
               bool maximize, bool is_first_step) {
  step_group({"_fused_sgd_", params, grads, {used(momenta)}, {}}, [&](size_t, double) {
    return SgdStep{base(lr, weight_decay, maximize), momentum, dampening, nesterov, is_first_step};
  });
}

void fused_adam(const TensorList& params, const TensorList& grads, const TensorList& means,
                const TensorList& squares, const TensorList& largest, const TensorList& steps,
                double lr, double beta1, double beta2, double weight_decay, double eps,
                bool maximize, bool decoupled) {
  Power power1(beta1), power2(beta2);
  step_group({"_fused_adam_", params, grads, {&means, &squares, used(largest)}, {&steps}},
             [&](size_t, double step) {
               AdamStep s{base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps,
                          std::sqrt(1 - power2(step))};
               s.lr = lr / (1 - power1(step));
               return s;
             });
}

void fused_adamax(const TensorList& params, const TensorList& grads, const TensorList& means,
                  const TensorList& largest, const TensorList& steps, double lr, double beta1,
                  double beta2, double weight_decay, double eps, bool maximize) {
  Power power1(beta1);
  step_group(
      {"_fused_adamax_", params, grads, {&means, &largest}, {&steps}}, [&](size_t, double step) {
        return AdamaxStep{base(lr / (1 - power1(step)), weight_decay, maximize), beta1, beta2, eps};
      });
}

void fused_nadam(const TensorList& params, const TensorList& grads, const TensorList& means,
                 const TensorList& squares, const TensorList& steps, const TensorList& mu_products,
                 double lr, double beta1, double beta2, double weight_decay, double eps,
                 double momentum_decay, bool maximize, bool decoupled) {
  Power power2(beta2), decay(0.96), next_decay(0.96);
  step_group({"_fused_nadam_", params, grads, {&means, &squares}, {&steps, &mu_products}},
             [&](size_t i, double step) {
               // The momentum of this step, and of the next one for Nesterov's look-ahead.
               const double mu = beta1 * (1 - 0.5 * decay(step * momentum_decay));
               const double next = beta1 * (1 - 0.5 * next_decay((step + 1) * momentum_decay));
               const double product = multiply(mu_products[i], mu);
               NAdamStep s{base(lr, weight_decay, maximize, decoupled),
                           beta1,
                           beta2,
                           eps,
                           lr * next / (1 - product * next),
                           std::sqrt(1 - power2(step))};
               s.lr = lr * (1 - mu) / (1 - product);
               return s;
             });
}

void fused_radam(const TensorList& params, const TensorList& grads, const TensorList& means,
                 const TensorList& squares, const TensorList& steps, double lr, double beta1,
                 double beta2, double weight_decay, double eps, bool maximize, bool decoupled) {
  Power power1(beta1), power2(beta2);
  step_group({"_fused_radam_", params, grads, {&means, &squares}, {&steps}},
             [&](size_t, double step) {
               // rho is the length of the approximated simple moving average (equations 5, 6).
               const double power = power2(step), limit = 2 / (1 - beta2) - 1;
               const double rho = limit - 2 * step * power / (1 - power);
               RAdamStep s{base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps, 0};
               s.lr = lr / (1 - power1(step));
               if (rho > 5) {
                 s.rectifier = std::sqrt((1 - power) * (rho - 4) * (rho - 2) * limit /
                                         ((limit - 4) * (limit - 2) * rho));
               }
               return s;
             });
}

void fused_rmsprop(const TensorList& params, const TensorList& grads, const TensorList& squares,
                   const TensorList& momenta, const TensorList& means, const TensorList& steps,
                   double lr, double alpha, double eps, double weight_decay, double momentum,
                   bool maximize) {
  step_group({"_fused_rmsprop_", params, grads, {&squares, used(momenta), used(means)}, {&steps}},
             [&](size_t, double) {
               return RmsPropStep{base(lr, weight_decay, maximize), alpha, momentum, eps};
             });
}

void fused_adagrad(const TensorList& params, const TensorList& grads, const TensorList& sums,
                   const TensorList& steps, double lr, double lr_decay, double weight_decay,
                   double eps, bool maximize) {
  step_group({"_fused_adagrad_", params, grads, {&sums}, {&steps}}, [&](size_t, double step) {
    return AdagradStep{base(lr / (1 + (step - 1) * lr_decay), weight_decay, maximize), eps};
  });
}

void fused_adadelta(const TensorList& params, const TensorList& grads, const TensorList& squares,
                    const TensorList& deltas, const TensorList& steps, double lr, double rho,
                    double eps, double weight_decay, bool maximize) {
  step_group(
      {"_fused_adadelta_", params, grads, {&squares, &deltas}, {&steps}},
      [&](size_t, double) { return AdadeltaStep{base(lr, weight_decay, maximize), rho, eps}; });
}

void fused_rprop(const TensorList& params, const TensorList& grads, const TensorList& previous,
                 const TensorList& sizes, const TensorList& steps, double slower, double faster,
                 double least, double most, bool maximize) {
  step_group({"_fused_rprop_", params, grads, {&previous, &sizes}, {&steps}}, [&](size_t, double) {
    return RpropStep{base(0, 0, maximize), slower, faster, least, most};
  });
}

void fused_asgd(const TensorList& params, const TensorList& grads, const TensorList& averages,
                const TensorList& steps, const TensorList& etas, const TensorList& mus, double lr,
                double lambd, double alpha, double t0, double weight_decay, bool maximize) {
  step_group({"_fused_asgd_", params, grads, {&averages}, {&steps, &etas, &mus}},
             [&](size_t i, double step) {
               const double eta = get(etas[i]);
               AsgdStep s{base(eta, weight_decay, maximize), get(mus[i])};
               s.shrink = 1 - lambd * eta;
               set(etas[i], lr / std::pow(1 + lambd * lr * step, alpha));
               set(mus[i], 1 / std::max(1.0, step - t0));
               return s;
             });
}

const Define optim_ops[] = {
    {"_fused_sgd_(params: Tensor[], grads: Tensor[], momentum_buffers: Tensor[], *, lr: float, "
     "momentum: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool, "
     "is_first_step: bool) -> None",
     "One SGD step on every parameter. `momentum_buffers` is empty where momentum is 0.",
     kernel(fused_sgd),
     {.forms = 0}},
    {"_fused_adam_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: Tensor[], "
     "max_exp_avg_sqs: Tensor[], steps: Tensor[], *, lr: float, beta1: float, beta2: float, "
     "weight_decay: float, eps: float, maximize: bool, decoupled: bool) -> None",
     "One Adam step on every parameter; AMSGrad's where `max_exp_avg_sqs` is not empty; "
     "`decoupled` is AdamW's weight decay. Counts `steps` up.",
     kernel(fused_adam),
     {.forms = 0}},
    {"_fused_adamax_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_infs: Tensor[], "
     "steps: Tensor[], *, lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
     "maximize: bool) -> None",
     "One Adamax step on every parameter. Counts `steps` up.",
     kernel(fused_adamax),
     {.forms = 0}},
    {"_fused_nadam_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: Tensor[], "
     "steps: Tensor[], mu_products: Tensor[], *, lr: float, beta1: float, beta2: float, "
     "weight_decay: float, eps: float, momentum_decay: float, maximize: bool, decoupled: bool) "
     "-> None",
     "One NAdam step on every parameter. Counts `steps` up.",
     kernel(fused_nadam),
     {.forms = 0}},
    {"_fused_radam_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: Tensor[], "
     "steps: Tensor[], *, lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
     "maximize: bool, decoupled: bool) -> None",
     "One RAdam step on every parameter. Counts `steps` up.",
     kernel(fused_radam),
     {.forms = 0}},
    {"_fused_rmsprop_(params: Tensor[], grads: Tensor[], square_avgs: Tensor[], momentum_buffers: "
     "Tensor[], grad_avgs: Tensor[], steps: Tensor[], *, lr: float, alpha: float, eps: float, "
     "weight_decay: float, momentum: float, maximize: bool) -> None",
     "One RMSprop step on every parameter, with momentum and centred where those lists are not "
     "empty. Counts `steps` up.",
     kernel(fused_rmsprop),
     {.forms = 0}},
    {"_fused_adagrad_(params: Tensor[], grads: Tensor[], sums: Tensor[], steps: Tensor[], *, lr: "
     "float, lr_decay: float, weight_decay: float, eps: float, maximize: bool) -> None",
     "One Adagrad step on every parameter. Counts `steps` up.",
     kernel(fused_adagrad),
     {.forms = 0}},
    {"_fused_adadelta_(params: Tensor[], grads: Tensor[], square_avgs: Tensor[], acc_deltas: "
     "Tensor[], steps: Tensor[], *, lr: float, rho: float, eps: float, weight_decay: float, "
     "maximize: bool) -> None",
     "One Adadelta step on every parameter. Counts `steps` up.",
     kernel(fused_adadelta),
     {.forms = 0}},
    {"_fused_rprop_(params: Tensor[], grads: Tensor[], prevs: Tensor[], step_sizes: Tensor[], "
     "steps: Tensor[], *, etaminus: float, etaplus: float, step_size_min: float, step_size_max: "
     "float, maximize: bool) -> None",
     "One Rprop step on every parameter. Counts `steps` up.",
     kernel(fused_rprop),
     {.forms = 0}},
    {"_fused_asgd_(params: Tensor[], grads: Tensor[], averages: Tensor[], steps: Tensor[], etas: "
     "Tensor[], mus: Tensor[], *, lr: float, lambd: float, alpha: float, t0: float, weight_decay: "
     "float, maximize: bool) -> None",
     "One step of averaged SGD on every parameter. Counts `steps` up; sets `etas` and `mus` for "
     "the "
     "next step.",
     kernel(fused_asgd),
     {.forms = 0}},
};

}  // namespace
}  // namespace taeda
