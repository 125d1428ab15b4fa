// The optimizers' rules, each in one pass over memory. The order of roundings follows the textbook
// updates, tensor by tensor. The papers are named in python/taeda/optim.
#include "kernels/cpu/nn/simd/optim.h"

#include <cmath>

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Which of the three states there are.
template <bool A, bool B, bool C> struct Has {
  static constexpr bool a = A, b = B, c = C;
};

// Each rule gives the new parameter, from p (after decoupled weight decay), its gradient g and its
// states s, which it changes. The numbers of the step do not change in the loop, so that compilers
// convert them to T before it.

template <class H, class T> T rule(const SgdStep& o, T p, T g, T* s) {
  if constexpr (H::a) {
    if (o.first) s[0] = g;
    else s[0] = (o.momentum != 0 ? T(o.momentum) * s[0] : T(0)) + T(1 - o.dampening) * g;
    g = o.nesterov ? g + T(o.momentum) * s[0] : s[0];
  }
  return p - T(o.lr) * g;
}

// The running means of the gradient and of its square, which Adam and its relatives share.
template <class S, class T> T mean(const S& o, T m, T g) { return m + T(1 - o.beta1) * (g - m); }
template <class S, class T> T mean_square(const S& o, T v, T g) {
  return T(o.beta2) * v + T(1 - o.beta2) * g * g;
}

template <class H, class T> T rule(const AdamStep& o, T p, T g, T* s) {
  s[0] = mean(o, s[0], g);
  T v = s[1] = mean_square(o, s[1], g);
  if constexpr (H::c) v = s[2] = v < s[2] ? s[2] : v;  // a nan stays
  return p - T(o.lr) * (s[0] / (std::sqrt(v) / T(o.root_correction) + T(o.eps)));
}

template <class H, class T> T rule(const AdamaxStep& o, T p, T g, T* s) {
  const T past = T(o.beta2) * s[1], now = std::abs(g) + T(o.eps);
  s[0] = mean(o, s[0], g);
  s[1] = now < past ? past : now;  // a nan in the gradient stays
  return p - T(o.lr) * (s[0] / s[1]);
}

template <class H, class T> T rule(const NAdamStep& o, T p, T g, T* s) {
  s[0] = mean(o, s[0], g);
  s[1] = mean_square(o, s[1], g);
  const T root = std::sqrt(s[1] / T(o.root_correction * o.root_correction)) + T(o.eps);
  return p - T(o.lr) * (g / root) - T(o.mean_lr) * (s[0] / root);
}

template <class H, class T> T rule(const RAdamStep& o, T p, T g, T* s) {
  s[0] = mean(o, s[0], g);
  s[1] = mean_square(o, s[1], g);
  const T scale = o.rectifier != 0 ? T(o.rectifier) / (std::sqrt(s[1]) + T(o.eps)) : T(1);
  return p - T(o.lr) * s[0] * scale;
}

template <class H, class T> T rule(const RmsPropStep& o, T p, T g, T* s) {
  const T fresh = T(1 - o.alpha);
  T v = s[0] = T(o.alpha) * s[0] + fresh * g * g;
  if constexpr (H::c) {
    s[2] = s[2] + fresh * (g - s[2]);
    v = v - s[2] * s[2];
  }
  T step = g / (std::sqrt(v) + T(o.eps));
  if constexpr (H::b) step = s[1] = step + T(o.momentum) * s[1];
  return p - T(o.lr) * step;
}

template <class H, class T> T rule(const AdagradStep& o, T p, T g, T* s) {
  s[0] += g * g;
  return p - T(o.lr) * (g / (std::sqrt(s[0]) + T(o.eps)));
}

template <class H, class T> T rule(const AdadeltaStep& o, T p, T g, T* s) {
  const T rho = T(o.rho), fresh = T(1 - o.rho), eps = T(o.eps);
  s[0] = rho * s[0] + fresh * g * g;
  const T delta = std::sqrt(s[1] + eps) / std::sqrt(s[0] + eps) * g;
  s[1] = rho * s[1] + fresh * delta * delta;
  return p - T(o.lr) * delta;
}

template <class H, class T> T rule(const RpropStep& o, T p, T g, T* s) {
  const T product = g * s[0], least = T(o.least), most = T(o.most);
  const T size = s[1] * (product > 0 ? T(o.faster) : product < 0 ? T(o.slower) : T(1));
  s[1] = size < least ? least : size > most ? most : size;
  s[0] = product < 0 ? T(0) : g;  // after a change of sign, wait
  return p - T((s[0] > 0) - (s[0] < 0)) * s[1];
}

template <class H, class T> T rule(const AsgdStep& o, T p, T g, T* s) {
  p = p - T(o.lr) * g;
  s[0] = o.mu == 1 ? p : s[0] + T(o.mu) * (p - s[0]);
  return p;
}

// The loop of all rules.
template <class T, class Step, class H> void update(const Step& step, T* const* at, int64_t n) {
  const Step o = step;
  T* __restrict param = at[0], * __restrict a = at[2], * __restrict b = at[3], * __restrict c = at[4];
  const T* __restrict grad = at[1];
  const T sign = o.maximize ? T(-1) : T(1), decay = T(o.weight_decay), shrink = T(o.shrink);
  for (int64_t i = 0; i < n; ++i) {
    const T p = param[i];
    const T g = sign * grad[i] + (decay != 0 ? decay * p : T(0));  // 0 * inf would be nan
    T s[3] = {H::a ? a[i] : T(0), H::b ? b[i] : T(0), H::c ? c[i] : T(0)};
    param[i] = rule<H>(o, p * shrink, g, s);
    if constexpr (H::a) a[i] = s[0];
    if constexpr (H::b) b[i] = s[1];
    if constexpr (H::c) c[i] = s[2];
  }
}

// Chooses the loop for the states that there are.
template <class T, class Step, bool... Known>
void choose(const Step& step, T* const* at, int64_t n) {
  constexpr int k = sizeof...(Known);
  if constexpr (k == 3) {
    update<T, Step, Has<Known...>>(step, at, n);
  } else if constexpr (k < Step::states || k >= Step::states + Step::optional) {
    choose<T, Step, Known..., (k < Step::states)>(step, at, n);
  } else {
    if (at[2 + k]) choose<T, Step, Known..., true>(step, at, n);
    else choose<T, Step, Known..., false>(step, at, n);
  }
}

template <class T, class Step> void run(const StepBase& step, void* const* operands, int64_t n) {
  T* at[kMostOperands];
  for (int k = 0; k < kMostOperands; ++k) at[k] = static_cast<T*>(operands[k]);
  choose<T>(static_cast<const Step&>(step), at, n);
}

template <class... Steps> constexpr OptimTable table() {
  OptimTable t{};
  ((t.loops[static_cast<int>(Steps::rule)][0] = run<float, Steps>), ...);
  ((t.loops[static_cast<int>(Steps::rule)][1] = run<double, Steps>), ...);
  return t;
}

}  // namespace

extern constinit const OptimTable optim_table =
    table<SgdStep, AdamStep, AdamaxStep, NAdamStep, RAdamStep, RmsPropStep, AdagradStep,
          AdadeltaStep, RpropStep, AsgdStep>();

}  // namespace taeda::cpu::simd::TAEDA_ISA
