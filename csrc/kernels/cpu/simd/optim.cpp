// SGD (Sutskever et al. 2013), Adam (Kingma & Ba 2015), AMSGrad (Reddi et al. 2018) and AdamW
// (Loshchilov & Hutter 2019), each in one pass over memory. The order of roundings follows the
// textbook updates, tensor by tensor.
#include "kernels/cpu/optim.h"

#include <cmath>

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T, bool Momentum, bool First, bool Nesterov>
void sgd_loop(const SgdStep& s, T* __restrict param, const T* __restrict grad,
              T* __restrict momentum, int64_t n) {
  const T lr = static_cast<T>(s.lr), decay = static_cast<T>(s.weight_decay),
          sign = s.maximize ? T(-1) : T(1);
  const T mu = static_cast<T>(s.momentum), fresh = static_cast<T>(1 - s.dampening);
  for (int64_t i = 0; i < n; ++i) {
    T g = sign * grad[i] + (decay != 0 ? decay * param[i] : T(0));  // 0 * inf would be nan
    if constexpr (Momentum) {
      T m = First ? g : mu * momentum[i] + fresh * g;
      momentum[i] = m;
      g = Nesterov ? g + mu * m : m;
    }
    param[i] -= lr * g;
  }
}

template <class T> void sgd(const SgdStep& s, T* param, const T* grad, T* momentum, int64_t n) {
  auto loop = !momentum ? sgd_loop<T, false, false, false>
              : s.first
                  ? (s.nesterov ? sgd_loop<T, true, true, true> : sgd_loop<T, true, true, false>)
              : s.nesterov ? sgd_loop<T, true, false, true>
                           : sgd_loop<T, true, false, false>;
  loop(s, param, grad, momentum, n);
}

template <class T, bool AmsGrad>
void adam_loop(const AdamStep& s, T* __restrict param, const T* __restrict grad, T* __restrict mean,
               T* __restrict square, T* __restrict max_square, int64_t n) {
  const double correction1 = 1 - std::pow(s.beta1, s.step),
               correction2 = 1 - std::pow(s.beta2, s.step);
  const T step_size = static_cast<T>(s.lr / correction1),
          root = static_cast<T>(std::sqrt(correction2));
  const T eps = static_cast<T>(s.eps), sign = s.maximize ? T(-1) : T(1);
  const T added = s.decoupled ? T(0) : static_cast<T>(s.weight_decay);
  const T shrink = s.decoupled ? static_cast<T>(1 - s.lr * s.weight_decay) : T(1);
  const T beta2 = static_cast<T>(s.beta2), new1 = static_cast<T>(1 - s.beta1),
          new2 = static_cast<T>(1 - s.beta2);
  for (int64_t i = 0; i < n; ++i) {
    T p = param[i] * shrink;
    T g = sign * grad[i] + (added != 0 ? added * p : T(0));
    T m = mean[i] + new1 * (g - mean[i]);
    T v = beta2 * square[i] + new2 * g * g;
    mean[i] = m;
    square[i] = v;
    if constexpr (AmsGrad) {
      v = v > max_square[i] ? v : max_square[i];
      max_square[i] = v;
    }
    param[i] = p - step_size * (m / (std::sqrt(v) / root + eps));
  }
}

template <class T>
void adam(const AdamStep& s, T* param, const T* grad, T* mean, T* square, T* max_square,
          int64_t n) {
  (s.amsgrad ? adam_loop<T, true> : adam_loop<T, false>)(s, param, grad, mean, square, max_square,
                                                         n);
}

}  // namespace

extern const OptimTable optim_table;
const OptimTable optim_table = {{sgd<float>, adam<float>}, {sgd<double>, adam<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
