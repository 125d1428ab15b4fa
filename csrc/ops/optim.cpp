// Optimizer steps: one call updates every parameter of a group.
#include "kernels/cpu/optim.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise.h"
#include "ops/op.h"
#include "ops/tensor_ops.h"

namespace taeda {
namespace {

constexpr int64_t kGrain = 1 << 15;
constexpr int64_t kChunk = 512;  // elements converted at a time where dtypes are mixed

// A group's lists. Of `scalars`, which are counts and the like, each parameter has a zero-dim
// tensor.
struct Group {
  const char* what;
  const TensorList& params;
  const TensorList& grads;
  std::array<const TensorList*, cpu::kMostOperands - 2> states;
  std::array<const TensorList*, 3> scalars;
};
// A list of states that are not used where it is empty.
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

// Checks every parameter before the first is changed, so that a step is taken whole or not at all.
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

// Whether `t` can be walked beside `like` element by element, in memory order.
bool lies_like(const Tensor& t, const Tensor& like) {
  if (like.is_contiguous()) return t.is_contiguous();
  return same(t.strides(), like.strides()) && is_dense_nonoverlapping(t.sizes(), t.strides());
}

// The real numbers that a dtype is made of.
DType real_of(DType d) {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}

// What a loop walks: memory of every operand in the same order.
struct Operands {
  std::array<char*, cpu::kMostOperands> data{};
  std::array<DType, cpu::kMostOperands> dtypes{};

  char* at(size_t k, int64_t i) const {
    return data[k] ? data[k] + i * static_cast<int64_t>(itemsize(dtypes[k])) : nullptr;
  }
};

// Runs a loop that computes in T over [begin, end). Other dtypes pass through small buffers.
template <class T>
void run(cpu::StepLoop loop, const cpu::StepBase& step, const Operands& o, DType compute,
         int64_t begin, int64_t end) {
  constexpr size_t most = cpu::kMostOperands;
  std::array<void*, most> pointers{};
  auto as_it_is = [&](size_t k) { return !o.data[k] || o.dtypes[k] == compute; };
  bool direct = true;
  for (size_t k = 0; k < most; ++k) direct = direct && as_it_is(k);
  if (direct) {
    for (size_t k = 0; k < most; ++k) pointers[k] = o.at(k, begin);
    loop(step, pointers.data(), end - begin);
    return;
  }
  alignas(64) T buffers[most][kChunk];
  auto convert = [](char* to, DType to_dtype, char* from, DType from_dtype, int64_t n) {
    cast_rows(static_cast<uint8_t>(to_dtype), static_cast<uint8_t>(from_dtype), to,
              static_cast<int64_t>(itemsize(to_dtype)), 0, from,
              static_cast<int64_t>(itemsize(from_dtype)), 0, n, 1);
  };
  for (int64_t i = begin; i < end; i += kChunk) {
    const int64_t n = std::min(kChunk, end - i);
    for (size_t k = 0; k < most; ++k) {
      pointers[k] = as_it_is(k) ? o.at(k, i) : reinterpret_cast<char*>(buffers[k]);
      if (!as_it_is(k))
        convert(static_cast<char*>(pointers[k]), compute, o.at(k, i), o.dtypes[k], n);
    }
    loop(step, pointers.data(), n);
    for (size_t k = 0; k < most; ++k) {
      if (k != 1 && !as_it_is(k))
        convert(o.at(k, i), o.dtypes[k], static_cast<char*>(pointers[k]), compute, n);
    }
  }
}

// Steps one parameter, in parallel where it is large. Complex numbers are pairs of real ones. What
// is not laid out as the parameter is, is worked on as a copy and then written back.
void update(const cpu::StepBase& step, cpu::Rule rule,
            const std::array<const Tensor*, cpu::kMostOperands>& tensors) {
  const Tensor& param = *tensors[0];
  const DType compute = real_of(param.dtype()) == DType::Float64 ? DType::Float64 : DType::Float32;
  const bool dense = is_dense_nonoverlapping(param.sizes(), param.strides());
  std::array<Tensor, cpu::kMostOperands> copies;
  Operands operands;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (!tensors[k]) continue;
    const Tensor& t = *tensors[k];
    if (!dense || !lies_like(t, param)) {
      copies[k] = dense ? empty_strided(param.sizes(), param.strides(), t.options())
                        : empty(param.sizes(), t.options());
      copy_into(copies[k], t);
    }
    operands.data[k] = static_cast<char*>((copies[k].defined() ? copies[k] : t).data());
    operands.dtypes[k] = real_of(t.dtype());
  }
  const int64_t n = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
  auto loop = cpu::optim_table().loops[static_cast<int>(rule)][compute == DType::Float64];
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    if (compute == DType::Float64) run<double>(loop, step, operands, compute, begin, end);
    else run<float>(loop, step, operands, compute, begin, end);
  });
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (k == 1 || !tensors[k]) continue;
    if (copies[k].defined()) copy_into(*tensors[k], copies[k]);
    tensors[k]->bump_version();
  }
}

double get(const Tensor& scalar) {
  return scalar.dtype() == DType::Float64 ? *scalar.data_as<double>() : *scalar.data_as<float>();
}

// Sets a zero-dim tensor; returns the value as its dtype holds it.
double set(const Tensor& scalar, double value) {
  if (scalar.dtype() == DType::Float64) return *scalar.data_as<double>() = value;
  return *scalar.data_as<float>() = static_cast<float>(value);
}

// Multiplies a zero-dim tensor, in its dtype.
double multiply(const Tensor& scalar, double factor) {
  return set(scalar, scalar.dtype() == DType::Float64 ? get(scalar) * factor
                                                      : get(scalar) * static_cast<float>(factor));
}

// Powers of a number. Parameters of a group have mostly taken equally many steps.
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

// Steps every parameter of a group by the numbers that make(i, count) gives for it, where `count`
// is the number of the step, from 1. The first list of scalars, where there is one, counts.
template <class Make> void step_group(const Group& g, Make&& make) {
  check_group(g);
  for (size_t i = 0; i < g.params.size(); ++i) {
    const double count = g.scalars[0] ? set((*g.scalars[0])[i], get((*g.scalars[0])[i]) + 1) : 0;
    const auto step = make(i, count);
    std::array<const Tensor*, cpu::kMostOperands> tensors{&g.params[i], &g.grads[i]};
    for (size_t k = 0; k < g.states.size(); ++k) {
      if (g.states[k]) tensors[k + 2] = &(*g.states[k])[i];
    }
    update(step, step.rule, tensors);
  }
}

// Weight decay in either of its forms.
cpu::StepBase base(double lr, double weight_decay, bool maximize, bool decoupled = false) {
  return {lr, decoupled ? 0 : weight_decay, decoupled ? 1 - lr * weight_decay : 1, maximize};
}

void fused_sgd(const TensorList& params, const TensorList& grads, const TensorList& momenta,
               double lr, double momentum, double dampening, double weight_decay, bool nesterov,
               bool maximize, bool is_first_step) {
  step_group({"_fused_sgd_", params, grads, {used(momenta)}, {}}, [&](size_t, double) {
    return cpu::SgdStep{base(lr, weight_decay, maximize), momentum, dampening, nesterov,
                        is_first_step};
  });
}

void fused_adam(const TensorList& params, const TensorList& grads, const TensorList& means,
                const TensorList& squares, const TensorList& largest, const TensorList& steps,
                double lr, double beta1, double beta2, double weight_decay, double eps,
                bool maximize, bool decoupled) {
  Power power1(beta1), power2(beta2);
  step_group({"_fused_adam_", params, grads, {&means, &squares, used(largest)}, {&steps}},
             [&](size_t, double step) {
               cpu::AdamStep s{base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps,
                               std::sqrt(1 - power2(step))};
               s.lr = lr / (1 - power1(step));
               return s;
             });
}

void fused_adamax(const TensorList& params, const TensorList& grads, const TensorList& means,
                  const TensorList& largest, const TensorList& steps, double lr, double beta1,
                  double beta2, double weight_decay, double eps, bool maximize) {
  Power power1(beta1);
  step_group({"_fused_adamax_", params, grads, {&means, &largest}, {&steps}},
             [&](size_t, double step) {
               return cpu::AdamaxStep{base(lr / (1 - power1(step)), weight_decay, maximize), beta1,
                                      beta2, eps};
             });
}

void fused_nadam(const TensorList& params, const TensorList& grads, const TensorList& means,
                 const TensorList& squares, const TensorList& steps, const TensorList& mu_products,
                 double lr, double beta1, double beta2, double weight_decay, double eps,
                 double momentum_decay, bool maximize, bool decoupled) {
  Power power2(beta2), decay(0.96), next_decay(0.96);
  step_group({"_fused_nadam_", params, grads, {&means, &squares}, {&steps, &mu_products}},
             [&](size_t i, double step) {
               // The momentum of this step and of the next, which the update looks ahead to.
               const double mu = beta1 * (1 - 0.5 * decay(step * momentum_decay));
               const double next = beta1 * (1 - 0.5 * next_decay((step + 1) * momentum_decay));
               const double product = multiply(mu_products[i], mu);
               cpu::NAdamStep s{base(lr, weight_decay, maximize, decoupled),
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
               // rho is the number of gradients that the mean square amounts to (equations 5, 6).
               const double power = power2(step), limit = 2 / (1 - beta2) - 1;
               const double rho = limit - 2 * step * power / (1 - power);
               cpu::RAdamStep s{base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps, 0};
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
               return cpu::RmsPropStep{base(lr, weight_decay, maximize), alpha, momentum, eps};
             });
}

void fused_adagrad(const TensorList& params, const TensorList& grads, const TensorList& sums,
                   const TensorList& steps, double lr, double lr_decay, double weight_decay,
                   double eps, bool maximize) {
  step_group({"_fused_adagrad_", params, grads, {&sums}, {&steps}}, [&](size_t, double step) {
    return cpu::AdagradStep{base(lr / (1 + (step - 1) * lr_decay), weight_decay, maximize), eps};
  });
}

void fused_adadelta(const TensorList& params, const TensorList& grads, const TensorList& squares,
                    const TensorList& deltas, const TensorList& steps, double lr, double rho,
                    double eps, double weight_decay, bool maximize) {
  step_group({"_fused_adadelta_", params, grads, {&squares, &deltas}, {&steps}},
             [&](size_t, double) {
               return cpu::AdadeltaStep{base(lr, weight_decay, maximize), rho, eps};
             });
}

void fused_rprop(const TensorList& params, const TensorList& grads, const TensorList& previous,
                 const TensorList& sizes, const TensorList& steps, double slower, double faster,
                 double least, double most, bool maximize) {
  step_group({"_fused_rprop_", params, grads, {&previous, &sizes}, {&steps}}, [&](size_t, double) {
    return cpu::RpropStep{base(0, 0, maximize), slower, faster, least, most};
  });
}

void fused_asgd(const TensorList& params, const TensorList& grads, const TensorList& averages,
                const TensorList& steps, const TensorList& etas, const TensorList& mus, double lr,
                double lambd, double alpha, double t0, double weight_decay, bool maximize) {
  step_group({"_fused_asgd_", params, grads, {&averages}, {&steps, &etas, &mus}},
             [&](size_t i, double step) {
               const double eta = get(etas[i]);
               cpu::AsgdStep s{base(eta, weight_decay, maximize), get(mus[i])};
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
