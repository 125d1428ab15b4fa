// Optimizer steps: one call updates every parameter of a group.
#include "kernels/cpu/nn/optim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "ops/op.h"
#include "ops/tensor_ops.h"

namespace taeda {
namespace {

constexpr int64_t kGrain = 1 << 15;          // elements that are worth another thread
constexpr int64_t kChunkOfThread = 1 << 13;  // elements that a thread takes at a time
constexpr size_t kGradient = 1;  // operand index of the gradient, the only read-only operand
constexpr int64_t kChunk = 512;  // elements converted at a time where dtypes are mixed

// The lists of a parameter group. `scalars` holds zero-dim tensors per parameter, such as step
// counts.
struct Group {
  const char* what;
  const TensorList& params;
  const TensorList& grads;
  std::array<const TensorList*, cpu::kMostOperands - 2> states;
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

// A loop's operands: dense memory in the same order, n elements each.
struct Operands {
  std::array<char*, cpu::kMostOperands> data{};
  std::array<DType, cpu::kMostOperands> dtypes{};
  int64_t n = 0;
  DType compute = DType::Float32;

  int64_t bytes(size_t k, int64_t count) const {
    return count * static_cast<int64_t>(itemsize(dtypes[k]));
  }
  char* at(size_t k, int64_t i) const { return data[k] ? data[k] + bytes(k, i) : nullptr; }
};

// Runs a loop that computes in T over [begin, end). Other dtypes are converted through small
// buffers.
template <class T>
void run_loop(cpu::StepLoop loop, const cpu::StepBase& step, const Operands& o, int64_t begin,
              int64_t end) {
  constexpr size_t most = cpu::kMostOperands;
  const DType compute = o.compute;
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
      if (k != kGradient && !as_it_is(k))
        convert(o.at(k, i), o.dtypes[k], static_cast<char*>(pointers[k]), compute, n);
    }
  }
}

// A copy of a tensor that is not laid out as its parameter is, and where to write it back, if at
// all.
struct Copy {
  const Tensor* to;
  Tensor values;
};

// The operands of parameter i. Complex numbers count as pairs of real ones.
Operands operands_of(const Group& g, size_t i, std::vector<Copy>& copies) {
  const Tensor& param = g.params[i];
  const bool dense = is_dense_nonoverlapping(param.sizes(), param.strides());
  Operands o;
  auto take = [&](size_t k, const Tensor& t) {
    const Tensor* from = &t;
    if (!dense || !has_same_layout(t, param)) {
      Tensor copy = dense ? empty_strided(param.sizes(), param.strides(), t.options())
                          : empty(param.sizes(), t.options());
      copy_into(copy, t);
      from = &copies.emplace_back(k == kGradient ? nullptr : &t, std::move(copy)).values;
    }
    o.data[k] = static_cast<char*>(from->data());
    o.dtypes[k] = real_of(t.dtype());
  };
  take(0, param);
  take(kGradient, g.grads[i]);
  for (size_t k = 0; k < g.states.size(); ++k) {
    if (g.states[k]) take(k + 2, (*g.states[k])[i]);
  }
  o.n = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
  if (real_of(param.dtype()) == DType::Float64) o.compute = DType::Float64;
  return o;
}

// The step of one parameter. `first` is the index of its first element in the concatenation of all
// parameters.
template <class Step> struct Update {
  Operands operands;
  int64_t first;
  Step step;

  void run(int64_t begin, int64_t end) const {
    const bool wide = operands.compute == DType::Float64;
    const auto loop = TAEDA_PICK(optim_table).loops[static_cast<int>(Step::rule)][wide];
    if (wide) run_loop<double>(loop, step, operands, begin, end);
    else run_loop<float>(loop, step, operands, begin, end);
  }
};

// True if no written buffer overlaps another operand, so that the updates can run in parallel.
template <class Step> bool are_disjoint(const std::vector<Update<Step>>& updates) {
  struct Range {
    const char *begin, *end;
    bool written;
  };
  std::vector<Range> all;
  for (const Update<Step>& u : updates) {
    const Operands& o = u.operands;
    for (size_t k = 0; k < o.data.size(); ++k) {
      if (o.data[k] && o.n > 0) all.push_back({o.data[k], o.at(k, o.n), k != kGradient});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const char *any = nullptr, *written = nullptr;  // the largest end among ranges that begin earlier
  for (const Range& s : all) {
    if (s.begin < (s.written ? any : written)) return false;
    any = std::max(any, s.end);
    if (s.written) written = std::max(written, s.end);
  }
  return true;
}

// In parallel over the concatenation of all parameters, or one after the other if they share
// memory.
template <class Step> void run_all(const std::vector<Update<Step>>& updates, int64_t total) {
  if (total > kGrain && !are_disjoint(updates)) {
    for (const Update<Step>& u : updates) {
      parallel_for(u.operands.n, kGrain, [&](int64_t begin, int64_t end) { u.run(begin, end); });
    }
    return;
  }
  parallel_for(total, total > kGrain ? kChunkOfThread : kGrain, [&](int64_t begin, int64_t end) {
    auto after = [](int64_t at, const Update<Step>& u) { return at < u.first; };
    auto u = std::upper_bound(updates.begin(), updates.end(), begin, after) - 1;
    for (; begin < end; ++u) {
      const int64_t stop = std::min(end - u->first, u->operands.n);
      if (stop > begin - u->first) u->run(begin - u->first, stop);
      begin = u->first + stop;
    }
  });
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
  using Step = decltype(make(size_t{0}, 0.0));
  check_group(g);
  const size_t count = g.params.size();
  std::vector<Copy> copies;
  std::vector<Update<Step>> updates;
  updates.reserve(count);
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    updates.push_back({operands_of(g, i, copies), total, Step{}});
    total += updates[i].operands.n;
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor* counter = g.scalars[0] ? &(*g.scalars[0])[i] : nullptr;
    updates[i].step = make(i, counter ? set(*counter, get(*counter) + 1) : 0);
  }
  run_all(updates, total);
  for (const Copy& copy : copies) {
    if (copy.to) copy_into(*copy.to, copy.values);
  }
  for (const TensorList* list : {&g.params, g.states[0], g.states[1], g.states[2]}) {
    if (!list) continue;
    for (const Tensor& t : *list) t.bump_version();
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
               // The momentum of this step, and of the next one for Nesterov's look-ahead.
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
               // rho is the length of the approximated simple moving average (equations 5, 6).
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
