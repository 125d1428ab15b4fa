// Optimizers' rules: what a step does to one parameter, and the op that takes it.
//
//   struct Adagrad : StepBase {
//     static constexpr RuleInfo info{.name = "adagrad", .states = "sums", .numbers = "steps",
//                                    .options = "lr: float, eps: float, maximize: bool",
//                                    .doc = "One Adagrad step on every parameter."};
//     double eps;
//     static Adagrad at(StepState&, double lr, double eps, bool maximize) {
//       return {step_base(lr, 0, maximize), eps};
//     }
//     template <class Has, class T> FN T f(T p, T g, T* s) const {
//       s[0] += g * g;
//       return p - T(lr) * (g / (sqrt(s[0]) + T(eps)));
//     }
//   };
//
// `at` makes the numbers of a parameter's step from the options of the op, once, in double. `f`
// gives the new parameter, from p (after decoupled weight decay), its gradient g and its states s,
// which it changes; Has::a, Has::b and Has::c tell which of the three states there are. Where a
// device counts the steps (RuleInfo::on_device), `at` is given an infinite count and other numbers
// of 0, and `counted` makes the numbers of a step from what it gave; it is also given pointers to
// the numbers beside the count, if there are any, to read and to change. The members of the rule do
// not change in the loop, so that compilers convert them to T before it. The order of roundings
// follows the textbook updates, tensor by tensor. A new optimizer needs this struct, its name in
// the list at the end, and a class in python/taeda/optim, which names the paper.
#pragma once

#include "kernels/functors/position.h"

namespace taeda {

constexpr int kMostOperands = 5;  // param, grad and up to three states

// What every rule's numbers begin with.
struct StepBase {
  double lr;
  double weight_decay = 0;  // an L2 penalty: added to the gradient
  double shrink = 1;        // decoupled weight decay: the parameter's factor
  bool maximize = false;

  // For another learning rate, from the numbers for 1.
  constexpr void set_rate(double rate) {
    lr *= rate;
    shrink = 1 - rate * (1 - shrink);
  }
};
// Weight decay in either of its forms.
constexpr StepBase step_base(double lr, double weight_decay, bool maximize,
                             bool decoupled = false) {
  return {lr, decoupled ? 0 : weight_decay, decoupled ? 1 - lr * weight_decay : 1, maximize};
}

// A number that a parameter keeps from step to step, float32 or float64.
struct StepNumber {
  double value = 0;
  bool single = true, changed = false;

  double set(double v) {
    changed = true;
    return value = single ? static_cast<double>(static_cast<float>(v)) : v;
  }
  double multiply(double factor) {
    return set(value * (single ? static_cast<double>(static_cast<float>(factor)) : factor));
  }
};

// Powers, of which the last few are kept: parameters of a group usually have one count of steps.
struct Powers {
  double operator()(double base, double exponent) {
    for (const Known& k : known) {
      if (k.base == base && k.exponent == exponent) return k.value;
    }
    Known& k = known[next++ % 4];
    return (k = {base, exponent, __builtin_pow(base, exponent)}).value;
  }

  struct Known {
    double base = 1, exponent = 0, value = 1;
  } known[4];
  unsigned next = 0;
};

// What `at` is told of a parameter.
struct StepState {
  Powers& power;
  double count = 0;            // of steps, this one included; 0 where the rule counts none
  StepNumber numbers[2] = {};  // those of RuleInfo::numbers after the count
};

// The op _fused_<name>_(params, grads, <states>, <optional>, <numbers>, *, <options>), where names
// are separated by ", ".
struct RuleInfo {
  const char* name;
  const char* states = "";    // lists of tensors like the parameters
  const char* optional = "";  // the same; empty lists stand for states that are not used
  const char* numbers = "";   // lists of zero-dim tensors; the first one counts steps
  const char* options = "";   // as in a schema
  const char* doc = "";
  bool on_device = false;  // whether a device may count the steps
};
// How many names such a list has.
constexpr int count_names(const char* list) {
  int n = *list ? 1 : 0;
  for (; *list; ++list) n += *list == ',';
  return n;
}

}  // namespace taeda

namespace taeda::TAEDA_ISA {

struct Sgd : StepBase {
  static constexpr RuleInfo info{
      .name = "sgd",
      .optional = "momentum_buffers",
      .options =
          "lr: float, momentum: float, dampening: float, weight_decay: float, "
          "nesterov: bool, maximize: bool, is_first_step: bool",
      .doc = "One SGD step on every parameter. `momentum_buffers` is empty where momentum is 0."};
  double momentum, dampening;
  bool nesterov, first;  // first: the momentum has no value yet
  static Sgd at(StepState&, double lr, double momentum, double dampening, double weight_decay,
                bool nesterov, bool maximize, bool is_first_step) {
    return {step_base(lr, weight_decay, maximize), momentum, dampening, nesterov, is_first_step};
  }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    if constexpr (Has::a) {
      if (first) s[0] = g;
      else s[0] = (momentum != 0 ? T(momentum) * s[0] : T(0)) + T(1 - dampening) * g;
      g = nesterov ? g + T(momentum) * s[0] : s[0];
    }
    return p - T(lr) * g;
  }
};

// The running means of the gradient and of its square, which Adam and its relatives share.
struct RunningMeans : StepBase {
  double beta1, beta2, eps;
  template <class T> FN T mean(T m, T g) const { return m + T(1 - beta1) * (g - m); }
  template <class T> FN T mean_square(T v, T g) const {
    return T(beta2) * v + T(1 - beta2) * g * g;
  }
};

struct Adam : RunningMeans {
  static constexpr RuleInfo info{
      .name = "adam",
      .states = "exp_avgs, exp_avg_sqs",
      .optional = "max_exp_avg_sqs",
      .numbers = "steps",
      .options =
          "lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
          "maximize: bool, decoupled: bool",
      .doc =
          "One Adam step on every parameter; AMSGrad's where `max_exp_avg_sqs` is not empty; "
          "`decoupled` is AdamW's weight decay. Counts `steps` up.",
      .on_device = true};
  double root_correction;  // what the root of the mean square is divided by
  static Adam at(StepState& s, double lr, double beta1, double beta2, double weight_decay,
                 double eps, bool maximize, bool decoupled) {
    Adam r{{step_base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps},
           sqrt(1 - s.power(beta2, s.count))};
    r.lr = lr / (1 - s.power(beta1, s.count));
    return r;
  }
  FN void counted(double count) {
    lr /= 1 - pow(beta1, count);
    root_correction = sqrt(1 - pow(beta2, count));
  }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    s[0] = mean(s[0], g);
    T v = s[1] = mean_square(s[1], g);
    if constexpr (Has::c) v = s[2] = v < s[2] ? s[2] : v;  // a nan stays
    return p - T(lr) * (s[0] / (sqrt(v) / T(root_correction) + T(eps)));
  }
};

struct Adamax : RunningMeans {
  static constexpr RuleInfo info{
      .name = "adamax",
      .states = "exp_avgs, exp_infs",
      .numbers = "steps",
      .options =
          "lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
          "maximize: bool",
      .doc = "One Adamax step on every parameter. Counts `steps` up.",
      .on_device = true};
  static Adamax at(StepState& s, double lr, double beta1, double beta2, double weight_decay,
                   double eps, bool maximize) {
    return {
        {step_base(lr / (1 - s.power(beta1, s.count)), weight_decay, maximize), beta1, beta2, eps}};
  }
  FN void counted(double count) { lr /= 1 - pow(beta1, count); }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    const T past = T(beta2) * s[1], now = abs(g) + T(eps);
    s[0] = mean(s[0], g);
    s[1] = now < past ? past : now;  // a nan in the gradient stays
    return p - T(lr) * (s[0] / s[1]);
  }
};

struct NAdam : RunningMeans {
  static constexpr RuleInfo info{
      .name = "nadam",
      .states = "exp_avgs, exp_avg_sqs",
      .numbers = "steps, mu_products",
      .options =
          "lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
          "momentum_decay: float, maximize: bool, decoupled: bool",
      .doc = "One NAdam step on every parameter. Counts `steps` up.",
      .on_device = true};
  double mean_lr;  // the rate of the mean; lr is that of the gradient
  double root_correction;
  double rate, momentum_decay;  // the options, for `counted`
  static NAdam at(StepState& s, double lr, double beta1, double beta2, double weight_decay,
                  double eps, double momentum_decay, bool maximize, bool decoupled) {
    // The momentum of this step, and of the next one for Nesterov's look-ahead.
    const double mu = beta1 * (1 - 0.5 * s.power(0.96, s.count * momentum_decay));
    const double next = beta1 * (1 - 0.5 * s.power(0.96, (s.count + 1) * momentum_decay));
    const double product = s.numbers[0].multiply(mu);
    NAdam r{{step_base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps},
            lr * next / (1 - product * next),
            sqrt(1 - s.power(beta2, s.count)),
            lr,
            momentum_decay};
    r.lr = lr * (1 - mu) / (1 - product);
    return r;
  }
  FN void set_rate(double factor) {
    StepBase::set_rate(factor);
    rate *= factor;
  }
  FN void counted(double count, float* const* numbers) {
    const double mu = beta1 * (1 - 0.5 * pow(0.96, count * momentum_decay));
    const double next = beta1 * (1 - 0.5 * pow(0.96, (count + 1) * momentum_decay));
    const double product = *numbers[0] *= static_cast<float>(mu);
    mean_lr = rate * next / (1 - product * next);
    root_correction = sqrt(1 - pow(beta2, count));
    lr = rate * (1 - mu) / (1 - product);
  }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    s[0] = mean(s[0], g);
    s[1] = mean_square(s[1], g);
    const T root = sqrt(s[1] / T(root_correction * root_correction)) + T(eps);
    return p - T(lr) * (g / root) - T(mean_lr) * (s[0] / root);
  }
};

struct RAdam : RunningMeans {
  static constexpr RuleInfo info{
      .name = "radam",
      .states = "exp_avgs, exp_avg_sqs",
      .numbers = "steps",
      .options =
          "lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, "
          "maximize: bool, decoupled: bool",
      .doc = "One RAdam step on every parameter. Counts `steps` up.",
      .on_device = true};
  double rectifier;  // 0 while the variance is not known well enough to scale by
  static RAdam at(StepState& s, double lr, double beta1, double beta2, double weight_decay,
                  double eps, bool maximize, bool decoupled) {
    RAdam r{{step_base(lr, weight_decay, maximize, decoupled), beta1, beta2, eps}, 0};
    r.lr = lr / (1 - s.power(beta1, s.count));
    r.rectify(s.power(beta2, s.count), s.count);
    return r;
  }
  FN void counted(double count) {
    lr /= 1 - pow(beta1, count);
    rectify(pow(beta2, count), count);
  }
  // rho is the length of the approximated simple moving average (equations 5, 6).
  FN void rectify(double power, double count) {
    const double limit = 2 / (1 - beta2) - 1, rho = limit - 2 * count * power / (1 - power);
    if (rho > 5) {
      rectifier =
          sqrt((1 - power) * (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
    }
  }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    s[0] = mean(s[0], g);
    s[1] = mean_square(s[1], g);
    const T scale = rectifier != 0 ? T(rectifier) / (sqrt(s[1]) + T(eps)) : T(1);
    return p - T(lr) * s[0] * scale;
  }
};

struct RmsProp : StepBase {
  static constexpr RuleInfo info{
      .name = "rmsprop",
      .states = "square_avgs",
      .optional = "momentum_buffers, grad_avgs",
      .numbers = "steps",
      .options =
          "lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, "
          "maximize: bool",
      .doc =
          "One RMSprop step on every parameter, with momentum and centred where those lists are "
          "not empty. Counts `steps` up.",
      .on_device = true};
  double alpha, momentum, eps;
  static RmsProp at(StepState&, double lr, double alpha, double eps, double weight_decay,
                    double momentum, bool maximize) {
    return {step_base(lr, weight_decay, maximize), alpha, momentum, eps};
  }
  FN void counted(double) {}
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    const T fresh = T(1 - alpha);
    T v = s[0] = T(alpha) * s[0] + fresh * g * g;
    if constexpr (Has::c) {
      s[2] = s[2] + fresh * (g - s[2]);
      v = v - s[2] * s[2];
    }
    T step = g / (sqrt(v) + T(eps));
    if constexpr (Has::b) step = s[1] = step + T(momentum) * s[1];
    return p - T(lr) * step;
  }
};

struct Adagrad : StepBase {
  static constexpr RuleInfo info{
      .name = "adagrad",
      .states = "sums",
      .numbers = "steps",
      .options = "lr: float, lr_decay: float, weight_decay: float, eps: float, maximize: bool",
      .doc = "One Adagrad step on every parameter. Counts `steps` up.",
      .on_device = true};
  double eps;
  double rate, lr_decay;  // the options, for `counted`
  static Adagrad at(StepState& s, double lr, double lr_decay, double weight_decay, double eps,
                    bool maximize) {
    return {step_base(lr / (1 + (s.count - 1) * lr_decay), weight_decay, maximize), eps, lr,
            lr_decay};
  }
  FN void set_rate(double factor) { rate *= factor; }
  FN void counted(double count) { lr = rate / (1 + (count - 1) * lr_decay); }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    s[0] += g * g;
    return p - T(lr) * (g / (sqrt(s[0]) + T(eps)));
  }
};

struct Adadelta : StepBase {
  static constexpr RuleInfo info{
      .name = "adadelta",
      .states = "square_avgs, acc_deltas",
      .numbers = "steps",
      .options = "lr: float, rho: float, eps: float, weight_decay: float, maximize: bool",
      .doc = "One Adadelta step on every parameter. Counts `steps` up.",
      .on_device = true};
  double rho, eps;
  static Adadelta at(StepState&, double lr, double rho, double eps, double weight_decay,
                     bool maximize) {
    return {step_base(lr, weight_decay, maximize), rho, eps};
  }
  FN void counted(double) {}
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    const T kept = T(rho), fresh = T(1 - rho), e = T(eps);
    s[0] = kept * s[0] + fresh * g * g;
    const T delta = sqrt(s[1] + e) / sqrt(s[0] + e) * g;
    s[1] = kept * s[1] + fresh * delta * delta;
    return p - T(lr) * delta;
  }
};

struct Rprop : StepBase {
  static constexpr RuleInfo info{
      .name = "rprop",
      .states = "prevs, step_sizes",
      .numbers = "steps",
      .options =
          "etaminus: float, etaplus: float, step_size_min: float, step_size_max: float, "
          "maximize: bool",
      .doc = "One Rprop step on every parameter. Counts `steps` up.",
      .on_device = true};
  double slower, faster, smallest, largest;
  static Rprop at(StepState&, double etaminus, double etaplus, double step_size_min,
                  double step_size_max, bool maximize) {
    return {step_base(0, 0, maximize), etaminus, etaplus, step_size_min, step_size_max};
  }
  FN void counted(double) {}
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    const T product = g * s[0], least = T(smallest), most = T(largest);
    const T size = s[1] * (product > 0 ? T(faster) : product < 0 ? T(slower) : T(1));
    s[1] = size < least ? least : size > most ? most : size;
    s[0] = product < 0 ? T(0) : g;  // after a change of sign, wait
    return p - T((s[0] > 0) - (s[0] < 0)) * s[1];
  }
};

struct Asgd : StepBase {
  static constexpr RuleInfo info{
      .name = "asgd",
      .states = "averages",
      .numbers = "steps, etas, mus",
      .options =
          "lr: float, lambd: float, alpha: float, t0: float, weight_decay: float, "
          "maximize: bool",
      .doc =
          "One step of averaged SGD on every parameter. Counts `steps` up; sets `etas` and "
          "`mus` for the next step.",
      .on_device = true};
  double mu;
  double rate, lambd, alpha, t0;  // the options, for `counted`
  static Asgd at(StepState& s, double lr, double lambd, double alpha, double t0,
                 double weight_decay, bool maximize) {
    auto& [eta, mu] = s.numbers;
    Asgd r{step_base(eta.value, weight_decay, maximize), mu.value, lr, lambd, alpha, t0};
    r.shrink = 1 - lambd * eta.value;
    eta.set(lr / s.power(1 + lambd * lr * s.count, alpha));
    mu.set(s.count - t0 > 1 ? 1 / (s.count - t0) : 1);
    return r;
  }
  FN void set_rate(double factor) { rate *= factor; }
  FN void counted(double count, float* const* numbers) {
    float &eta = *numbers[0], &next_mu = *numbers[1];
    lr = eta;
    shrink = 1 - lambd * lr;
    mu = next_mu;
    eta = static_cast<float>(rate / pow(1 + lambd * rate * count, alpha));
    next_mu = count - t0 > 1 ? static_cast<float>(1 / (count - t0)) : 1.0f;
  }
  template <class Has, class T> FN T f(T p, T g, T* s) const {
    p = p - T(lr) * g;
    s[0] = mu == 1 ? p : s[0] + T(mu) * (p - s[0]);
    return p;
  }
};

using OptimRules = List<Sgd, Adam, Adamax, NAdam, RAdam, RmsProp, Adagrad, Adadelta, Rprop, Asgd>;

}  // namespace taeda::TAEDA_ISA
