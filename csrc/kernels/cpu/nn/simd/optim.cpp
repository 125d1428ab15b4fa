// The loop of all optimizers' rules (kernels/functors/optim.h): one pass over memory.
#include "kernels/cpu/nn/simd/optim.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using namespace taeda::TAEDA_ISA;

// Which of the three states there are.
template <bool A, bool B, bool C> struct States {
  static constexpr bool a = A, b = B, c = C;
};

template <class T, class Rule, class Has> void update(const Rule& rule, T* const* at, int64_t n) {
  const Rule o = rule;
  T* __restrict param = at[0], * __restrict a = at[2], * __restrict b = at[3], * __restrict c = at[4];
  const T* __restrict grad = at[1];
  const T sign = o.maximize ? T(-1) : T(1), decay = T(o.weight_decay), shrink = T(o.shrink);
  for (int64_t i = 0; i < n; ++i) {
    const T p = param[i];
    const T g = sign * grad[i] + (decay != 0 ? decay * p : T(0));  // 0 * inf would be nan
    T s[3] = {Has::a ? a[i] : T(0), Has::b ? b[i] : T(0), Has::c ? c[i] : T(0)};
    param[i] = o.template f<Has>(p * shrink, g, s);
    if constexpr (Has::a) a[i] = s[0];
    if constexpr (Has::b) b[i] = s[1];
    if constexpr (Has::c) c[i] = s[2];
  }
}

// Chooses the loop for the states that there are.
template <class T, class Rule, bool... Known>
void choose(const Rule& rule, T* const* at, int64_t n) {
  constexpr int k = sizeof...(Known), always = count_names(Rule::info.states),
                most = always + count_names(Rule::info.optional);
  if constexpr (k == 3) {
    update<T, Rule, States<Known...>>(rule, at, n);
  } else if constexpr (k < always || k >= most) {
    choose<T, Rule, Known..., (k < always)>(rule, at, n);
  } else {
    if (at[2 + k]) choose<T, Rule, Known..., true>(rule, at, n);
    else choose<T, Rule, Known..., false>(rule, at, n);
  }
}

template <class T, class Rule> void run(const StepBase& step, void* const* operands, int64_t n) {
  T* at[kMostOperands];
  for (int k = 0; k < kMostOperands; ++k) at[k] = static_cast<T*>(operands[k]);
  choose<T>(static_cast<const Rule&>(step), at, n);
}

template <class> struct Loops;
template <class... Rules> struct Loops<List<Rules...>> {
  static constexpr StepLoop of[][2] = {{run<float, Rules>, run<double, Rules>}...};
};

}  // namespace

extern constinit const OptimTable optim_table{Loops<OptimRules>::of};

}  // namespace taeda::cpu::simd::TAEDA_ISA
