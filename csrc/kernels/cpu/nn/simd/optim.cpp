// The optimizers' rules, each in one pass over memory. The order of roundings follows the textbook
// updates, tensor by tensor. The papers are named in python/taeda/optim.
#include "kernels/cpu/nn/optim.h"

#include <cmath>

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// The gradient that a rule sees: turned around to climb, with the L2 penalty.
template <class T> struct Gradient {
  explicit Gradient(const StepBase& s)
      : sign(s.maximize ? T(-1) : T(1)),
        decay(static_cast<T>(s.weight_decay)) {}
  T operator()(T g, T p) const {
    return sign * g + (decay != 0 ? decay * p : T(0));  // 0 * inf would be nan
  }
  T sign, decay;
};

template <class T, bool Momentum, bool Nesterov>
void sgd_loop(const SgdStep& s, T* __restrict param, const T* __restrict grad,
              T* __restrict momentum, int64_t n) {
  const Gradient<T> gradient(s);
  const T lr = static_cast<T>(s.lr);
  const T mu = s.first ? T(0) : static_cast<T>(s.momentum);
  const T fresh = s.first ? T(1) : static_cast<T>(1 - s.dampening);
  const T ahead = static_cast<T>(s.momentum);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]);
    if constexpr (Momentum) {
      T m = (mu != 0 ? mu * momentum[i] : T(0)) + fresh * g;
      momentum[i] = m;
      g = Nesterov ? g + ahead * m : m;
    }
    param[i] -= lr * g;
  }
}

template <class T> void sgd(const SgdStep& s, T* const* at, int64_t n) {
  auto loop = !at[2]       ? sgd_loop<T, false, false>
              : s.nesterov ? sgd_loop<T, true, true>
                           : sgd_loop<T, true, false>;
  loop(s, at[0], at[1], at[2], n);
}

// The running means of the gradient and of its square, which Adam and its relatives share.
template <class T> struct Means {
  template <class S>
  explicit Means(const S& s)
      : beta2(static_cast<T>(s.beta2)),
        new1(static_cast<T>(1 - s.beta1)),
        new2(static_cast<T>(1 - s.beta2)) {}
  T mean(T m, T g) const { return m + new1 * (g - m); }
  T square(T v, T g) const { return beta2 * v + new2 * g * g; }
  T beta2, new1, new2;
};

template <class T, bool AmsGrad>
void adam_loop(const AdamStep& s, T* __restrict param, const T* __restrict grad, T* __restrict mean,
               T* __restrict square, T* __restrict largest, int64_t n) {
  const Gradient<T> gradient(s);
  const Means<T> means(s);
  const T lr = static_cast<T>(s.lr), root = static_cast<T>(s.root_correction);
  const T eps = static_cast<T>(s.eps), shrink = static_cast<T>(s.shrink);
  for (int64_t i = 0; i < n; ++i) {
    T p = param[i] * shrink, g = gradient(grad[i], p);
    T m = means.mean(mean[i], g), v = means.square(square[i], g);
    mean[i] = m;
    square[i] = v;
    if constexpr (AmsGrad) {
      v = v < largest[i] ? largest[i] : v;  // a nan stays
      largest[i] = v;
    }
    param[i] = p - lr * (m / (std::sqrt(v) / root + eps));
  }
}

template <class T> void adam(const AdamStep& s, T* const* at, int64_t n) {
  (at[4] ? adam_loop<T, true> : adam_loop<T, false>)(s, at[0], at[1], at[2], at[3], at[4], n);
}

template <class T> void adamax(const AdamaxStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict mean = at[2];
  T* __restrict largest = at[3];
  const Gradient<T> gradient(s);
  const Means<T> means(s);
  const T lr = static_cast<T>(s.lr), eps = static_cast<T>(s.eps);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]), m = means.mean(mean[i], g);
    T past = means.beta2 * largest[i], now = std::abs(g) + eps;
    T big = now < past ? past : now;  // a nan in the gradient stays
    mean[i] = m;
    largest[i] = big;
    param[i] -= lr * (m / big);
  }
}

template <class T> void nadam(const NAdamStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict mean = at[2];
  T* __restrict square = at[3];
  const Gradient<T> gradient(s);
  const Means<T> means(s);
  const T lr = static_cast<T>(s.lr), mean_lr = static_cast<T>(s.mean_lr);
  const T correction = static_cast<T>(s.root_correction * s.root_correction);
  const T eps = static_cast<T>(s.eps), shrink = static_cast<T>(s.shrink);
  for (int64_t i = 0; i < n; ++i) {
    T p = param[i] * shrink, g = gradient(grad[i], p);
    T m = means.mean(mean[i], g), v = means.square(square[i], g);
    mean[i] = m;
    square[i] = v;
    T root = std::sqrt(v / correction) + eps;
    param[i] = p - lr * (g / root) - mean_lr * (m / root);
  }
}

template <class T> void radam(const RAdamStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict mean = at[2];
  T* __restrict square = at[3];
  const Gradient<T> gradient(s);
  const Means<T> means(s);
  const T lr = static_cast<T>(s.lr), rectifier = static_cast<T>(s.rectifier);
  const T eps = static_cast<T>(s.eps), shrink = static_cast<T>(s.shrink);
  for (int64_t i = 0; i < n; ++i) {
    T p = param[i] * shrink, g = gradient(grad[i], p);
    T m = means.mean(mean[i], g), v = means.square(square[i], g);
    mean[i] = m;
    square[i] = v;
    T scale = rectifier != 0 ? rectifier / (std::sqrt(v) + eps) : T(1);
    param[i] = p - lr * m * scale;
  }
}

template <class T, bool Momentum, bool Centered>
void rmsprop_loop(const RmsPropStep& s, T* __restrict param, const T* __restrict grad,
                  T* __restrict square, T* __restrict momentum, T* __restrict mean, int64_t n) {
  const Gradient<T> gradient(s);
  const T lr = static_cast<T>(s.lr), eps = static_cast<T>(s.eps);
  const T alpha = static_cast<T>(s.alpha), fresh = static_cast<T>(1 - s.alpha);
  const T mu = static_cast<T>(s.momentum);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]);
    T v = alpha * square[i] + fresh * g * g;
    square[i] = v;
    if constexpr (Centered) {
      T m = mean[i] + fresh * (g - mean[i]);
      mean[i] = m;
      v = v - m * m;
    }
    T step = g / (std::sqrt(v) + eps);
    if constexpr (Momentum) {
      step += mu * momentum[i];
      momentum[i] = step;
    }
    param[i] -= lr * step;
  }
}

template <class T> void rmsprop(const RmsPropStep& s, T* const* at, int64_t n) {
  auto loop = at[3] ? (at[4] ? rmsprop_loop<T, true, true> : rmsprop_loop<T, true, false>)
                    : (at[4] ? rmsprop_loop<T, false, true> : rmsprop_loop<T, false, false>);
  loop(s, at[0], at[1], at[2], at[3], at[4], n);
}

template <class T> void adagrad(const AdagradStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict sum = at[2];
  const Gradient<T> gradient(s);
  const T lr = static_cast<T>(s.lr), eps = static_cast<T>(s.eps);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]), total = sum[i] + g * g;
    sum[i] = total;
    param[i] -= lr * (g / (std::sqrt(total) + eps));
  }
}

template <class T> void adadelta(const AdadeltaStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict square = at[2];
  T* __restrict steps = at[3];
  const Gradient<T> gradient(s);
  const T lr = static_cast<T>(s.lr), eps = static_cast<T>(s.eps);
  const T rho = static_cast<T>(s.rho), fresh = static_cast<T>(1 - s.rho);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]);
    T v = rho * square[i] + fresh * g * g;
    T delta = std::sqrt(steps[i] + eps) / std::sqrt(v + eps) * g;
    square[i] = v;
    steps[i] = rho * steps[i] + fresh * delta * delta;
    param[i] -= lr * delta;
  }
}

template <class T> void rprop(const RpropStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict previous = at[2];
  T* __restrict sizes = at[3];
  const Gradient<T> gradient(s);
  const T slower = static_cast<T>(s.slower), faster = static_cast<T>(s.faster);
  const T least = static_cast<T>(s.least), most = static_cast<T>(s.most);
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient(grad[i], param[i]), turn = g * previous[i];
    T size = sizes[i] * (turn > 0 ? faster : turn < 0 ? slower : T(1));
    size = size < least ? least : size > most ? most : size;
    g = turn < 0 ? T(0) : g;  // after a change of sign, wait
    T sign = static_cast<T>((g > 0) - (g < 0));
    previous[i] = g;
    sizes[i] = size;
    param[i] -= sign * size;
  }
}

template <class T> void asgd(const AsgdStep& s, T* const* at, int64_t n) {
  T* __restrict param = at[0];
  const T* __restrict grad = at[1];
  T* __restrict average = at[2];
  const Gradient<T> gradient(s);
  const T lr = static_cast<T>(s.lr), shrink = static_cast<T>(s.shrink), mu = static_cast<T>(s.mu);
  for (int64_t i = 0; i < n; ++i) {
    T p = param[i] * shrink - lr * gradient(grad[i], param[i]);
    param[i] = p;
    average[i] = mu == 1 ? p : average[i] + mu * (p - average[i]);
  }
}

// A rule's loop behind the signature that all rules share.
template <class T, class S, void (*F)(const S&, T* const*, int64_t)>
void erased(const StepBase& step, void* const* operands, int64_t n) {
  T* at[kMostOperands];
  for (int k = 0; k < kMostOperands; ++k) at[k] = static_cast<T*>(operands[k]);
  F(static_cast<const S&>(step), at, n);
}

}  // namespace

extern const OptimTable optim_table;
const OptimTable optim_table = {{
    // in the order of Rule
    {erased<float, SgdStep, sgd<float>>, erased<double, SgdStep, sgd<double>>},
    {erased<float, AdamStep, adam<float>>, erased<double, AdamStep, adam<double>>},
    {erased<float, AdamaxStep, adamax<float>>, erased<double, AdamaxStep, adamax<double>>},
    {erased<float, NAdamStep, nadam<float>>, erased<double, NAdamStep, nadam<double>>},
    {erased<float, RAdamStep, radam<float>>, erased<double, RAdamStep, radam<double>>},
    {erased<float, RmsPropStep, rmsprop<float>>, erased<double, RmsPropStep, rmsprop<double>>},
    {erased<float, AdagradStep, adagrad<float>>, erased<double, AdagradStep, adagrad<double>>},
    {erased<float, AdadeltaStep, adadelta<float>>, erased<double, AdadeltaStep, adadelta<double>>},
    {erased<float, RpropStep, rprop<float>>, erased<double, RpropStep, rprop<double>>},
    {erased<float, AsgdStep, asgd<float>>, erased<double, AsgdStep, asgd<double>>},
}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
